"""Three public traces of real GPUs, to the tenth of a microsecond. Right values: issue 2, item 9."""

from pathlib import Path

import pytest

from engine_hooks.adapters.profile_files import imported
from engine_hooks.adapters.profiles.imported import ImportedTrace
from engine_hooks.contract.names import GpuTimeSource, GraphKind
from engine_hooks.contract.validation import clock_trouble

TRACES = Path(__file__).parents[3] / "shared" / "cases" / "traces"
pytestmark = pytest.mark.skipif(not TRACES.is_dir(), reason=f"the example traces are not at {TRACES}")

V100_GPU_US = [16081, 31224, 16372, 30707, 16514, 29402, 16709, 29862, 16313, 30659, 16423, 29382]
V100_DURATION_US = [58934, 54300, 71909, 51094, 71072, 45064, 24862, 39759, 61867, 51080, 70787, 49268]


def one(name: str) -> ImportedTrace:
    trace = imported(TRACES / name, GraphKind.MIXED)
    assert len(trace.instances) == 1
    assert not trace.skipped
    return trace


def test_v100() -> None:
    trace = one("hta_v100_12graphs.json.gz")
    (instance,) = trace.instances
    runs = instance.executions
    assert [run.graph_gpu_time_ns for run in runs] == [us * 1000 for us in V100_GPU_US]
    assert [run.duration_ns for run in runs] == [us * 1000 for us in V100_DURATION_US]
    depths = [run.graph_queue_depth or 0 for run in runs]
    assert (min(depths), max(depths)) == (204, 1004)
    assert [run.graph_sequence for run in runs] == list(range(12))
    assert {run.graph_gpu_time_source for run in runs} == {GpuTimeSource.PROFILER}
    assert not any(run.graph_after_idle or clock_trouble(run) for run in runs)
    # Its predecessor on the stream ended 4 4 3 4 3 4 7 2 4 3 4 4 us before each. In some of these gaps
    # work on another stream kept the device busy: no idle time, see decision 0019.
    gaps_us = [(run.graph_wall_time_ns - run.graph_gpu_time_ns) / 1000 for run in runs]
    assert gaps_us == [0, 4, 0, 4, 0, 4, 4, 2, 0, 3, 0, 4]
    assert (instance.device_busy_ns, instance.device_span_ns) == (717_943_000, 745_239_000)
    # Two graphs take turns; HTA's model has one for each direction.
    assert len({run.graph_name for run in runs}) == 2
    assert [run.graph_name for run in runs] == [runs[0].graph_name, runs[1].graph_name] * 6
    assert runs[0].started_at == 1_661_938_466_283_576_000
    assert (trace.operations, trace.operations_without_launch) == (15_632, 614)
    assert instance.device == 1
    assert instance.resource.engine_attributes["gpu_name"] == "Tesla V100-SXM2-16GB"
    assert instance.resource.engine_attributes["distributed_rank"] == "1"


def test_sglang() -> None:
    (instance,) = one("mi_sglang_1.json.gz").instances
    (run,) = instance.executions
    assert round(run.graph_gpu_time_ns / 1000, 1) == 9930.6
    assert round(run.duration_ns / 1000, 1) == 9944.7
    assert run.graph_queue_depth == 0
    # The stream's previous kernel ended 36.8 us before the launch: idle for 50.8 us until the graph ran.
    assert round((run.graph_wall_time_ns - run.graph_gpu_time_ns) / 1000, 1) == 50.8
    assert run.started_at == 4_909_914_680_019_238
    assert instance.resource.engine_attributes["gpu_name"] == "AMD Instinct MI300X"


def test_vllm() -> None:
    (instance,) = one("mi_vllm_piecewise_25.json.gz").instances
    runs = instance.executions
    assert len(runs) == 25
    first, last = runs[0], runs[-1]
    assert [round(run.graph_gpu_time_ns / 1000, 1) for run in (first, last)] == [536.6, 5815.7]
    assert [round(run.duration_ns / 1000, 1) for run in (first, last)] == [147446.3, 281687.3]
    assert all(run.graph_queue_depth for run in runs)
    # Piecewise: an opening piece, twenty-three equal layers, a closing piece.
    assert len({run.graph_name for run in runs[1:-1]}) == 1
    assert len({run.graph_name for run in runs}) == 3
