"""What the importer makes of small Nsight Systems exports. Times in the exports are nanoseconds."""

import gzip
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from engine_hooks.adapters.profile_files import imported
from engine_hooks.adapters.profiles.columns import Skip
from engine_hooks.adapters.profiles.errors import (
    NothingToImportError,
    TraceImportError,
    TraceMalformedError,
    TraceUnreadableError,
    WrongShiftError,
)
from engine_hooks.adapters.profiles.imported import ImportedTrace
from engine_hooks.adapters.profiles.shifting import UNMOVED, Shift, shift_of
from engine_hooks.contract.execution import GraphExecution
from engine_hooks.contract.names import GpuTimeSource, GraphKind
from tests.fixtures.nsight_exports import ExportMaker, serialized

SESSION_NS = 1_790_000_000_000_000_000
Fill = Callable[[ExportMaker], None]


def export(tmp_path: Path, fill: Fill, session_start_ns: int | None = None) -> Path:
    path = tmp_path / "report.sqlite"
    with ExportMaker(path, session_start_ns) as maker:
        fill(maker)
    return path


def read(path: Path, shift: Shift = UNMOVED) -> ImportedTrace:
    return imported(path, GraphKind.MIXED, shift)


def runs_of(path: Path) -> tuple[GraphExecution, ...]:
    (instance,) = read(path).instances
    return instance.executions


def two_replays(maker: ExportMaker) -> None:
    maker.launch(1, 100, 110)
    maker.graph(1, 150, 250)
    maker.launch(2, 200, 210)
    maker.graph(2, 260, 300)


def test_graphs_traced_as_one(tmp_path: Path) -> None:
    first, second = runs_of(export(tmp_path, two_replays))
    assert (first.started_at, first.duration_ns, first.graph_gpu_time_ns) == (100, 150, 100)
    assert (first.graph_gpu_start_offset_ns, first.graph_queue_depth, first.graph_after_idle) == (50, 0, True)
    assert (second.graph_gpu_time_ns, second.graph_wall_time_ns, second.graph_queue_depth) == (40, 50, 1)
    assert (second.graph_sequence, second.graph_gpu_time_source) == (1, GpuTimeSource.PROFILER)
    assert first.graph_name == second.graph_name == "graph-id-5"


def test_graphs_traced_node_by_node(tmp_path: Path) -> None:
    def fill(maker: ExportMaker) -> None:
        for replay in (0, 1):
            maker.launch(replay, 100 + 500 * replay, 110 + 500 * replay)
            maker.kernel(replay, 150 + 500 * replay, 250 + 500 * replay, node=1)
            maker.kernel(replay, 240 + 500 * replay, 260 + 500 * replay, node=2, stream=4)
            maker.copy(replay, 300 + 500 * replay, 320 + 500 * replay)
            maker.clear(replay, 330 + 500 * replay, 340 + 500 * replay)

    path = export(tmp_path, fill)
    (instance,) = read(path).instances
    assert [run.graph_gpu_time_ns for run in instance.executions] == [190, 190]
    assert (instance.device_busy_ns, instance.device_span_ns) == (2 * 140, 690)
    (name,) = {run.graph_name for run in instance.executions}
    assert name.startswith("graph-4-ops-")


def test_work_outside_graphs_fills_queue_and_gap(tmp_path: Path) -> None:
    def fill(maker: ExportMaker) -> None:
        maker.call(1, 10, 20)
        maker.kernel(1, 30, 200)
        maker.launch(2, 100, 110)
        maker.graph(2, 230, 300)

    (run,) = runs_of(export(tmp_path, fill))
    assert (run.graph_queue_depth, run.graph_wall_time_ns) == (1, 100)


def test_both_profilers_give_the_same_rows(tmp_path: Path) -> None:
    """The same work, traced by nsys node by node and by Kineto."""

    def fill(maker: ExportMaker) -> None:
        maker.call(1, 1_000, 2_000)
        maker.kernel(1, 3_000, 90_000)
        maker.launch(2, 5_000, 9_000)
        maker.kernel(2, 95_000, 99_000, "attention", node=1)
        maker.kernel(2, 98_000, 120_000, "gemm", node=2, stream=4)
        maker.range("decode", 4_000, 10_000)

    def event(cat: str, name: str, ts: int, dur: int, **arguments: object) -> str:
        thread = arguments.get("stream", 1)
        fields = {"ph": "X", "cat": cat, "name": name, "pid": 0, "tid": thread, "ts": ts, "dur": dur, "args": arguments}
        return json.dumps(fields)

    shape = {"device": 0, "grid": [1, 1, 1], "block": [1, 1, 1]}
    kineto = tmp_path / "trace.json"
    events = [
        event("cuda_runtime", "cudaLaunchKernel", 1, 1, correlation=1),
        event("kernel", "gemm", 3, 87, correlation=1, stream=3, **shape),
        event("cuda_runtime", "cudaGraphLaunch", 5, 4, correlation=2),
        event("kernel", "attention", 95, 4, correlation=2, stream=3, **shape),
        event("kernel", "gemm", 98, 22, correlation=2, stream=4, **shape),
        event("user_annotation", "decode", 4, 6),
    ]
    kineto.write_text(f"[{', '.join(events)}]")
    assert runs_of(export(tmp_path, fill)) == runs_of(kineto)


def test_processes_and_devices_are_engines_of_their_own(tmp_path: Path) -> None:
    """Two processes use the same correlation ids, and each calls its GPU device 0."""

    def fill(maker: ExportMaker) -> None:
        for pid, gpu in ((7, 3), (8, 4)):
            maker.insert("PROCESSES", globalPid=serialized(pid), pid=pid, name=f"worker{pid}")
            maker.insert("TARGET_INFO_CUDA_DEVICE", gpuId=gpu, cudaId=0, pid=pid)
            maker.insert("TARGET_INFO_GPU", vmId=0, id=gpu, name=f"H200 no {gpu}")
            maker.launch(1, 100, 110, pid=pid)
            maker.graph(1, 150, 200 + pid, pid=pid)
        maker.launch(2, 300, 310, pid=8)
        maker.graph(2, 350, 400, pid=8, device=1)

    trace = read(export(tmp_path, fill))
    assert not trace.skipped
    by_label = {i.resource.service_instance_id.split("-", 2)[2]: i for i in trace.instances}
    assert set(by_label) == {"pid7-gpu0", "pid8-gpu0", "pid8-gpu1"}
    assert [run.graph_gpu_time_ns for run in by_label["pid7-gpu0"].executions] == [57]
    assert [run.graph_gpu_time_ns for run in by_label["pid8-gpu0"].executions] == [58]
    resource = by_label["pid8-gpu0"].resource
    assert (resource.gpu_ids, resource.service_name) == (("4",), "nsight")
    assert resource.engine_attributes["gpu_name"] == "H200 no 4"
    assert resource.engine_attributes["process_name"] == "worker8"
    assert by_label["pid8-gpu1"].resource.gpu_ids == ("1",)


def test_times_stand_where_the_session_began(tmp_path: Path) -> None:
    path = export(tmp_path, two_replays, SESSION_NS)
    trace = read(path)
    assert trace.instances[0].executions[0].started_at == SESSION_NS + 100
    assert trace.instances[0].resource.engine_attributes["trace_base_time_ns"] == str(SESSION_NS)
    assert trace.instances[0].resource.engine_attributes["nsys_schema_version"] == "3.28.1"
    assert read(path, shift_of("base", 0)).instances == trace.instances
    last = read(path, shift_of("now", 5_000_000)).instances[0].executions[-1]
    assert last.started_at + last.duration_ns == 5_000_000


def test_without_a_session_start_times_stay_and_have_no_base(tmp_path: Path) -> None:
    path = export(tmp_path, two_replays)
    assert runs_of(path)[0].started_at == 100
    with pytest.raises(WrongShiftError, match=r"has no TARGET_INFO_SESSION_START_TIME\.utcEpochNs"):
        read(path, shift_of("base", 0))


def test_ranges_name_graphs(tmp_path: Path) -> None:
    def fill(maker: ExportMaker) -> None:
        two_replays(maker)
        maker.range("step #1", 90, 120)
        maker.range("verify", 95, 115, registered=True)
        maker.range("elsewhere", 190, 220, tid=2)
        maker.range("process wide", 190, 220, pushed=False)
        maker.range("never popped", 195, None)

    assert [run.graph_name for run in runs_of(export(tmp_path, fill))] == ["verify-id-5", "graph-id-5"]


def test_operations_without_time_or_device_are_counted(tmp_path: Path) -> None:
    def fill(maker: ExportMaker) -> None:
        two_replays(maker)
        for number, (start, end, device) in enumerate(((0, 0, 0), (700, 0, 0), (700, 800, 2**31 - 1)), 10):
            maker.launch(number, 600, 610)
            maker.graph(number, start, end, device=device)
        maker.launch(20, 650, 660)

    trace = read(export(tmp_path, fill))
    assert len(trace.instances[0].executions) == 2
    assert trace.skipped == {Skip.NO_TIME: 2, Skip.NO_DEVICE: 1, Skip.NO_OPERATIONS: 1}
    assert trace.operations_left_out == {Skip.NO_TIME: 2, Skip.NO_DEVICE: 1}


def test_operations_without_a_launch_are_counted(tmp_path: Path) -> None:
    def fill(maker: ExportMaker) -> None:
        two_replays(maker)
        maker.kernel(77, 10, 20)
        maker.kernel(None, 10, 20)
        maker.call(None, 10, 20)

    assert read(export(tmp_path, fill)).operations_without_launch == 2


def test_the_same_bytes_are_the_same_engine_whatever_the_name(tmp_path: Path) -> None:
    path = export(tmp_path, two_replays)
    other = tmp_path / "trace.json"  # Recognised by content.
    other.write_bytes(path.read_bytes())
    assert read(other).instances == read(path).instances


def test_nothing_is_written_beside_an_export(tmp_path: Path) -> None:
    path = export(tmp_path, two_replays)
    before = path.read_bytes()
    read(path)
    assert [file.name for file in tmp_path.iterdir()] == ["report.sqlite"]
    assert path.read_bytes() == before


def test_progress_ends_at_the_size_of_the_file(tmp_path: Path) -> None:
    def fill(maker: ExportMaker) -> None:
        two_replays(maker)
        kernels = [(number, number + 1, 0, 0, 3, serialized(7), 1, 1, 1, *[1] * 6) for number in range(50_000)]
        maker.table("CUPTI_ACTIVITY_KIND_KERNEL")
        maker.database.executemany(
            "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, contextId, streamId, globalPid, demangledName,"
            " shortName, registersPerThread, gridX, gridY, gridZ, blockX, blockY, blockZ)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            kernels,
        )

    path = export(tmp_path, fill)
    seen: list[int] = []
    imported(path, GraphKind.MIXED, on_progress=seen.append)
    assert seen == sorted(seen)
    assert len(seen) == 3
    assert seen[-1] == path.stat().st_size


def refusal_of(path: Path, error: type[TraceImportError]) -> str:
    with pytest.raises(error) as raised:
        read(path)
    message = str(raised.value)
    assert message.startswith(str(path))
    assert "\n" not in message
    return message.removeprefix(f"{path} ")


@pytest.mark.parametrize("share", [0.001, 0.1, 0.5, 0.9, 0.9999])
def test_cut_off(tmp_path: Path, share: float) -> None:
    path = export(tmp_path, two_replays)
    whole = path.read_bytes()
    left = max(int(len(whole) * share), 16)
    path.write_bytes(whole[:left])
    assert f"is cut off: it has {left:,} of " in refusal_of(path, TraceUnreadableError)


def test_damaged(tmp_path: Path) -> None:
    path = export(tmp_path, two_replays)
    whole = path.read_bytes()
    path.write_bytes(whole[:100] + b"\xff" * 4_000 + whole[4_100:])
    assert refusal_of(path, TraceUnreadableError).startswith("is damaged (")


@pytest.fixture(scope="module")
def whole_export(tmp_path_factory: pytest.TempPathFactory) -> Path:
    def fill(maker: ExportMaker) -> None:
        two_replays(maker)
        maker.kernel(3, 400, 500)
        maker.range("step", 90, 120)
        maker.range("verify", 95, 115, registered=True)

    return export(tmp_path_factory.mktemp("whole"), fill, SESSION_NS)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 1 << 20), st.binary(min_size=1, max_size=64))
@example(4005, b"\x80")  # SQLite's message quotes a name that is no UTF-8.
def test_a_damaged_export_is_imported_or_refused_in_one_line(whole_export: Path, place: int, damage: bytes) -> None:
    content = bytearray(whole_export.read_bytes())
    place = 16 + place % (len(content) - len(damage) - 16)
    content[place : place + len(damage)] = damage
    damaged = whole_export.with_name("damaged.sqlite")
    damaged.write_bytes(content)
    try:
        read(damaged)
    except TraceImportError as error:
        assert "\n" not in str(error)  # noqa: PT017


def test_another_database(tmp_path: Path) -> None:
    path = tmp_path / "other.sqlite"
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE StringIds (id, value)")
        database.execute("CREATE VIEW CUPTI_ACTIVITY_KIND_RUNTIME AS SELECT 1")
        database.commit()
    assert refusal_of(path, TraceUnreadableError) == "is an SQLite database, but no export of Nsight Systems"


def test_no_launch(tmp_path: Path) -> None:
    path = export(tmp_path, lambda maker: maker.call(1, 1, 2))
    assert "holds no graph launch" in refusal_of(path, NothingToImportError)
    empty = tmp_path / "empty.sqlite"
    with ExportMaker(empty, SESSION_NS):
        pass
    assert "among its 0 CUDA calls" in refusal_of(empty, NothingToImportError)


def test_a_schema_without_a_column_that_matters(tmp_path: Path) -> None:
    path = export(tmp_path, two_replays)
    with closing(sqlite3.connect(path)) as database:
        database.execute("ALTER TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE DROP COLUMN graphId")
        database.commit()
    assert "export of another Nsight Systems schema (no such column: graphId)" in refusal_of(path, TraceUnreadableError)


@pytest.mark.parametrize("start", ["soon", 1.5, 2**63 - 1])
def test_a_time_that_is_none_names_the_row(tmp_path: Path, start: object) -> None:
    def fill(maker: ExportMaker) -> None:
        two_replays(maker)
        maker.launch(3, start, start)

    with pytest.raises(TraceMalformedError, match="row 2 of CUPTI_ACTIVITY_KIND_RUNTIME has no usable time or id"):
        read(export(tmp_path, fill, SESSION_NS))


def test_a_packed_export(tmp_path: Path) -> None:
    path = export(tmp_path, two_replays)
    packed = tmp_path / "report.sqlite.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert refusal_of(packed, TraceUnreadableError).startswith("is a packed SQLite database: unpack it")


@pytest.mark.parametrize("content", [b"\x00\x01\x02", b"time,kernel\n1,gemm\n", b"SQLite format 2", b"17"])
def test_a_file_of_neither_kind(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "report.nsys-rep"
    path.write_bytes(content)
    assert "nsys export --type sqlite" in refusal_of(path, TraceUnreadableError)
