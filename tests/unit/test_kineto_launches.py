"""What the importer makes of small handmade traces. Times in the traces are microseconds."""

import gzip
import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine_hooks.adapters.profile_files import imported
from engine_hooks.adapters.profiles.columns import Skip
from engine_hooks.adapters.profiles.errors import TraceMalformedError, WrongShiftError
from engine_hooks.adapters.profiles.imported import ImportedTrace
from engine_hooks.adapters.profiles.shifting import UNMOVED, Shift, shift_of
from engine_hooks.contract.execution import GraphExecution
from engine_hooks.contract.names import GraphKind

Event = dict[str, Any]


def call(correlation: int, ts: Any, dur: Any = 5, name: str = "cudaLaunchKernel", tid: int = 1) -> Event:
    return {
        "ph": "X",
        "cat": "cuda_runtime",
        "name": name,
        "pid": 10,
        "tid": tid,
        "ts": ts,
        "dur": dur,
        "args": {"correlation": correlation},
    }


def graph(correlation: int, ts: Any, dur: Any = 5, name: str = "cudaGraphLaunch", tid: int = 1) -> Event:
    return call(correlation, ts, dur, name, tid)


def kernel(
    correlation: int, ts: Any, dur: Any, *, stream: int = 7, device: int = 0, name: str = "gemm", cat: str = "kernel"
) -> Event:
    return {
        "ph": "X",
        "cat": cat,
        "name": name,
        "pid": device,
        "tid": stream,
        "ts": ts,
        "dur": dur,
        "args": {"correlation": correlation, "device": device, "stream": stream, "grid": [1, 1, 1]},
    }


def annotation(name: str, ts: int, dur: int, tid: int = 1) -> Event:
    return {"ph": "X", "cat": "user_annotation", "name": name, "pid": 10, "tid": tid, "ts": ts, "dur": dur}


def imported_from(tmp_path: Path, events: list[Event], shift: Shift = UNMOVED, **header: Any) -> ImportedTrace:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({**header, "traceEvents": events}))
    return imported(path, GraphKind.MIXED, shift)


def runs_of(tmp_path: Path, events: list[Event]) -> tuple[GraphExecution, ...]:
    (instance,) = imported_from(tmp_path, events).instances
    return instance.executions


def test_gpu_time_is_first_to_last_operation_gaps_included(tmp_path: Path) -> None:
    (run,) = runs_of(tmp_path, [graph(1, 100), kernel(1, 120, 10), kernel(1, 150, 20, cat="gpu_memcpy")])
    assert run.graph_gpu_time_ns == 50_000
    assert run.duration_ns == 70_000
    assert run.graph_gpu_start_offset_ns == 20_000
    assert run.started_at == 100_000


def test_wall_time_of_a_queued_graph_counts_from_the_operation_before_it(tmp_path: Path) -> None:
    (run,) = runs_of(tmp_path, [call(1, 90), graph(2, 100), kernel(1, 95, 105), kernel(2, 203, 10)])
    assert run.graph_queue_depth == 1
    assert run.graph_wall_time_ns == 13_000


def test_wall_time_of_a_drained_graph_holds_the_idle_gap_the_late_host_caused(tmp_path: Path) -> None:
    (run,) = runs_of(tmp_path, [call(1, 10), kernel(1, 20, 10), graph(2, 90), kernel(2, 100, 10)])
    assert run.graph_queue_depth == 0
    assert run.graph_wall_time_ns == 80_000
    assert not run.graph_after_idle


def test_wall_time_without_an_earlier_operation_counts_from_the_launch(tmp_path: Path) -> None:
    (run,) = runs_of(tmp_path, [graph(1, 90), kernel(1, 100, 10), call(2, 1), kernel(2, 2, 3, stream=8)])
    assert run.graph_wall_time_ns == 20_000
    assert run.graph_after_idle


def test_an_earlier_operation_that_overlaps_leaves_no_gap(tmp_path: Path) -> None:
    (run,) = runs_of(tmp_path, [call(1, 10), kernel(1, 20, 100), graph(2, 30), kernel(2, 100, 10)])
    assert run.graph_wall_time_ns == run.graph_gpu_time_ns == 10_000


def test_a_gap_in_which_another_stream_kept_the_device_busy_is_not_idle(tmp_path: Path) -> None:
    """Idle of each stream by itself was reported by others as headroom of a device that was never idle."""
    own = [call(1, 10), kernel(1, 20, 10), graph(2, 90), kernel(2, 100, 10)]
    busy_throughout = [call(3, 11), kernel(3, 25, 80, stream=8)]
    busy_for_a_while = [call(3, 11), kernel(3, 40, 20, stream=8), call(4, 12), kernel(4, 50, 30, stream=9)]
    for others, idle_us in (([], 70), (busy_throughout, 0), (busy_for_a_while, 30)):
        (run,) = runs_of(tmp_path, own + others)
        assert run.graph_wall_time_ns - run.graph_gpu_time_ns == idle_us * 1000


def test_no_idle_time_is_charged_to_two_graphs(tmp_path: Path) -> None:
    """The third runs where the stream was last used long ago: the gap before the second is the second's."""
    events = [
        *(call(1, 1), kernel(1, 2, 8)),
        *(graph(2, 40), kernel(2, 50, 10, stream=8)),
        *(graph(3, 70), kernel(3, 80, 10)),
    ]
    gaps_us = [(run.graph_wall_time_ns - run.graph_gpu_time_ns) // 1000 for run in runs_of(tmp_path, events)]
    assert gaps_us == [10, 20]


def test_busy_time_of_a_device_is_the_union_of_its_streams(tmp_path: Path) -> None:
    events = [graph(1, 10), kernel(1, 20, 30), kernel(1, 40, 30, stream=8), call(2, 15), kernel(2, 100, 5, stream=9)]
    (instance,) = imported_from(tmp_path, [*events, *(call(3, 1), kernel(3, 500, 5, device=1))]).instances
    assert (instance.device_busy_ns, instance.device_span_ns) == (55_000, 85_000)


def test_operations_without_a_correlation_id_are_submissions_of_their_own(tmp_path: Path) -> None:
    nameless = [kernel(0, 10, 5), kernel(0, 500, 5)]
    for event in nameless:
        del event["args"]["correlation"]
    trace = imported_from(tmp_path, [*nameless, graph(1, 100), kernel(1, 120, 5)])
    assert trace.instances[0].executions[0].graph_queue_depth == 0
    assert trace.operations_without_launch == 2


def test_depth_counts_submissions_of_every_kind_and_stream_once_each(tmp_path: Path) -> None:
    events = [
        *(call(1, 10), kernel(1, 20, 5)),  # ended
        *(call(2, 30), kernel(2, 90, 50, stream=8)),  # running, another stream
        *(graph(3, 40), kernel(3, 150, 5), kernel(3, 160, 5)),  # waiting, one submission
        *(call(4, 50), kernel(4, 170, 5, cat="gpu_memset")),  # waiting
        *(graph(5, 100), kernel(5, 200, 5)),
        *(call(6, 110), kernel(6, 195, 2)),  # submitted later
    ]
    assert [run.graph_queue_depth for run in runs_of(tmp_path, events)] == [1, 3]


def test_work_from_before_the_profile_is_pending_too(tmp_path: Path) -> None:
    trace = imported_from(
        tmp_path, [kernel(1, 10, 20), kernel(2, 90, 20), kernel(9, 300, 5), graph(3, 100), kernel(3, 120, 5)]
    )
    assert trace.instances[0].executions[0].graph_queue_depth == 1
    assert trace.operations_without_launch == 3


def test_other_devices_are_other_engines(tmp_path: Path) -> None:
    events = [
        *(graph(1, 10), kernel(1, 20, 5, device=0)),
        *(graph(2, 12), kernel(2, 30, 5, device=1)),
        *(graph(3, 14), kernel(3, 40, 5, device=1)),
    ]
    trace = imported_from(tmp_path, events)
    assert [(i.device, [run.graph_sequence for run in i.executions]) for i in trace.instances] == [
        (0, [0]),
        (1, [0, 1]),
    ]
    assert [run.graph_queue_depth for run in trace.instances[1].executions] == [0, 1]
    ids = {instance.resource.service_instance_id for instance in trace.instances}
    assert len(ids) == 2
    assert [instance.resource.gpu_ids for instance in trace.instances] == [("0",), ("1",)]


def test_launches_without_operations_are_counted(tmp_path: Path) -> None:
    trace = imported_from(tmp_path, [graph(1, 10), kernel(1, 20, 5), graph(2, 30)])
    assert trace.skipped == {Skip.NO_OPERATIONS: 1}


def test_one_id_of_two_threads_is_ambiguous_but_nested_calls_are_one(tmp_path: Path) -> None:
    nested = [graph(1, 10, 9), graph(1, 12, 3, name="cuGraphLaunch"), kernel(1, 20, 5)]
    clashing = [graph(2, 30), graph(2, 31, tid=2), kernel(2, 40, 5)]
    trace = imported_from(tmp_path, nested + clashing)
    assert [run.started_at for run in trace.instances[0].executions] == [10_000]
    assert trace.skipped == {Skip.AMBIGUOUS: 2}


def test_a_run_that_breaks_the_contract_is_counted_by_reason(tmp_path: Path) -> None:
    hours_us = 2 * 3_600_000_000
    trace = imported_from(
        tmp_path, [graph(1, 10), kernel(1, 20, 5), graph(2, 30), kernel(2, hours_us, 5), graph(3, 60), kernel(3, 40, 5)]
    )
    assert [run.graph_sequence for run in trace.instances[0].executions] == [0]
    assert sum(trace.skipped.values()) == 2


@pytest.mark.parametrize("name", ["cudaGraphLaunch", "hipGraphLaunch", "cuGraphLaunch", "cudaGraphLaunch_v10000"])
def test_every_api_that_launches_graphs(tmp_path: Path, name: str) -> None:
    assert len(runs_of(tmp_path, [graph(1, 10, name=name), kernel(1, 20, 5)])) == 1


def test_graphs_are_named_by_range_count_and_content(tmp_path: Path) -> None:
    events = [
        annotation("ProfilerStep#3", 0, 900),
        annotation("outer", 5, 800),
        *(annotation("decode #1", 9, 20), graph(1, 10), kernel(1, 15, 5)),
        *(annotation("decode #2", 109, 20), graph(2, 110), kernel(2, 115, 5)),
        *(graph(3, 210), kernel(3, 215, 5), kernel(3, 225, 5)),
        *(graph(4, 310, tid=2), kernel(4, 315, 5)),
        *(graph(5, 410, tid=2), kernel(5, 415, 5, name="other")),
    ]
    names = [run.graph_name for run in runs_of(tmp_path, events)]
    assert names[0] == names[1]
    assert [name.rsplit("-", 1)[0] for name in names] == [
        "decode-1-ops",
        "decode-1-ops",
        "outer-2-ops",
        "graph-1-ops",
        "graph-1-ops",
    ]
    assert names[3] != names[4]


@pytest.mark.parametrize("form", [float, str, lambda us: f"{us}.000"])
def test_times_may_be_floats_or_strings(tmp_path: Path, form: Any) -> None:
    plain = [graph(1, 100), kernel(1, 120, 10), call(2, 99), kernel(2, 101, 7)]
    dressed = [event | {"ts": form(event["ts"]), "dur": form(event["dur"])} for event in plain]
    assert runs_of(tmp_path, dressed) == runs_of(tmp_path, plain)


def test_the_nanosecond_of_a_time_in_2022_survives(tmp_path: Path) -> None:
    path = tmp_path / "exact.json"
    text = json.dumps([graph(1, "@"), kernel(1, 1661938466283577, 1)]).replace('"@"', "1661938466283576.123")
    path.write_text(text)
    (instance,) = imported(path, GraphKind.MIXED).instances
    assert instance.executions[0].started_at == 1_661_938_466_283_576_123


@pytest.mark.parametrize(
    ("field", "value"),
    [("ts", None), ("ts", "soon"), ("ts", "NaN"), ("ts", True), ("dur", -1), ("ts", 1e300), ("dur", "1e999999999")],
)
def test_an_impossible_time_names_the_event(tmp_path: Path, field: str, value: Any) -> None:
    events = [graph(1, 10), kernel(1, 20, 5), kernel(1, 30, 5) | {field: value}]
    with pytest.raises(TraceMalformedError, match=rf'trace.json: event 2 "{field}" is .*nothing was imported$'):
        imported_from(tmp_path, events)


def busy_trace(seed: int) -> list[Event]:
    chance = random.Random(seed)
    events: list[Event] = []
    for correlation in range(60):
        start = correlation * 10
        launch = graph if chance.random() < 0.3 else call
        if chance.random() < 0.9:
            events.append(launch(correlation, start))
        events.extend(
            kernel(
                correlation,
                start + chance.randrange(40) + 50 * i,
                chance.randrange(1, 90),
                stream=chance.choice((7, 8)),
            )
            for i in range(chance.randrange(4))
        )
    return [*events, graph(99, 700), kernel(99, 720, 5)]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 1000), order=st.randoms(use_true_random=False))
def test_the_order_of_events_means_nothing(tmp_path: Path, seed: int, order: random.Random) -> None:
    events = busy_trace(seed)
    shuffled = order.sample(events, len(events))
    assert runs_of(tmp_path, shuffled) == runs_of(tmp_path, events)


def graph_spans(events: list[Event]) -> list[tuple[int, int]]:
    """First start and last end of each graph launch's kernels."""
    launched = {e["args"]["correlation"] for e in events if e["name"] == "cudaGraphLaunch"}
    own = [[e for e in events if e["cat"] == "kernel" and e["args"]["correlation"] == graph] for graph in launched]
    return [(min(k["ts"] for k in kernels), max(k["ts"] + k["dur"] for k in kernels)) for kernels in own if kernels]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 1000))
def test_figures_equal_their_plain_definitions(tmp_path: Path, seed: int) -> None:
    """The binary searches against a literal reading of the definitions; unrecorded work is taken out."""
    events = busy_trace(seed)
    called = {e["args"]["correlation"]: e["ts"] for e in events if e["cat"] == "cuda_runtime"}
    events = [e for e in events if e["args"]["correlation"] in called]
    kernels = [e for e in events if e["cat"] == "kernel"]
    graphs = graph_spans(events)
    for run in runs_of(tmp_path, events):
        launched = run.started_at // 1000
        own_id = next(c for c, ts in called.items() if ts == launched)
        own = [k for k in kernels if k["args"]["correlation"] == own_id]
        first, end = min(k["ts"] for k in own), max(k["ts"] + k["dur"] for k in own)
        stream = min(own, key=lambda k: (k["ts"], k["ts"] + k["dur"]))["tid"]
        earlier = [k["ts"] + k["dur"] for k in kernels if k["tid"] == stream and k["ts"] < first]
        earlier += [ended for started, ended in graphs if started < first]
        waiting = range(min(max(earlier), first) if earlier else min(launched, first), first)
        idle = set(waiting).difference(*(range(k["ts"], k["ts"] + k["dur"]) for k in kernels))
        pending = {
            k["args"]["correlation"]
            for k in kernels
            if called[k["args"]["correlation"]] < launched < k["ts"] + k["dur"]
        }
        assert run.graph_gpu_time_ns == (end - first) * 1000
        assert run.graph_wall_time_ns == (end - first + len(idle)) * 1000
        assert run.graph_queue_depth == len(pending)


def test_the_same_content_is_the_same_engine_however_it_is_packed(tmp_path: Path) -> None:
    text = json.dumps([graph(1, 10), kernel(1, 20, 5)]).encode()
    (tmp_path / "a.json").write_bytes(text)
    (tmp_path / "b.json.gz").write_bytes(gzip.compress(text))
    one, two = (imported(tmp_path / name, GraphKind.MIXED) for name in ("a.json", "b.json.gz"))
    assert one.instances == two.instances
    other_kind = imported(tmp_path / "a.json", GraphKind.PLAIN_DECODE)
    assert other_kind.instances[0].resource.service_instance_id != one.instances[0].resource.service_instance_id
    assert other_kind.instances[0].executions[0].graph_kind == GraphKind.PLAIN_DECODE


def test_shift_to_a_time_moves_the_last_end_there(tmp_path: Path) -> None:
    events = [graph(1, 10), kernel(1, 20, 5), graph(2, 30), kernel(2, 40, 7)]
    now_ns = 1_700_000_000_123_456_789
    (instance,) = imported_from(tmp_path, events, shift_of("now", now_ns)).instances
    assert instance.executions[-1].started_at + instance.executions[-1].duration_ns == now_ns
    assert instance.executions[1].started_at - instance.executions[0].started_at == 20_000
    assert shift_of("2026-11-29T12:00:00.5+01:00", 0) == Shift(1_795_950_000_500_000_000)
    assert shift_of("2026-11-29T11:00:00", 0) == Shift(1_795_950_000_000_000_000)
    assert shift_of(None, now_ns) == UNMOVED


def test_shift_to_base_adds_the_base_time(tmp_path: Path) -> None:
    events = [graph(1, 10), kernel(1, 20, 5)]
    base_ns = 1_775_078_550_000_000_000
    trace = imported_from(tmp_path, events, shift_of("base", 0), baseTimeNanoseconds=base_ns)
    assert trace.instances[0].executions[0].started_at == base_ns + 10_000
    with pytest.raises(WrongShiftError, match="has no baseTimeNanoseconds"):
        imported_from(tmp_path, events, shift_of("base", 0))


def test_a_shift_that_is_no_time() -> None:
    with pytest.raises(WrongShiftError, match="--shift-to yesterday: give now, base or a time such as"):
        shift_of("yesterday", 0)
