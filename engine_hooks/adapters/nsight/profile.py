"""What matters of an Nsight Systems export, in columns.

A graph is one row of `CUPTI_ACTIVITY_KIND_GRAPH_TRACE` (`--cuda-graph-trace=graph`, what nsys
does unless told otherwise) or its nodes are rows of the kernels', copies' and sets' tables
(`--cuda-graph-trace=node`). Both carry the correlation id of the launch, which is unique in one
process only. Times are ns from the session's start; where the export says when that was, they
are moved there.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from engine_hooks.adapters.nsight.export import Export
from engine_hooks.adapters.profiles.columns import GRAPH_LAUNCH, Annotation, LaunchCall, Place, Profile, Skip
from engine_hooks.adapters.profiles.errors import TraceMalformedError

RUNTIME: Final = "CUPTI_ACTIVITY_KIND_RUNTIME"
GRAPHS: Final = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
RANGES: Final = "NVTX_EVENTS"
CALLS: Final = f"SELECT start, end, globalTid, correlationId, nameId FROM {RUNTIME} WHERE correlationId IS NOT NULL"  # noqa: S608
OPERATIONS: Final = {
    "CUPTI_ACTIVITY_KIND_KERNEL": (
        "SELECT start, end, globalPid, correlationId, deviceId, streamId,"
        " demangledName, gridX, gridY, gridZ, blockX, blockY, blockZ FROM CUPTI_ACTIVITY_KIND_KERNEL"
    ),
    "CUPTI_ACTIVITY_KIND_MEMCPY": (
        "SELECT start, end, globalPid, correlationId, deviceId, streamId, 'copy', copyKind"
        " FROM CUPTI_ACTIVITY_KIND_MEMCPY"
    ),
    "CUPTI_ACTIVITY_KIND_MEMSET": (
        "SELECT start, end, globalPid, correlationId, deviceId, streamId, 'set' FROM CUPTI_ACTIVITY_KIND_MEMSET"
    ),
    GRAPHS: (
        "SELECT start, end, globalPid, correlationId, deviceId, streamId, graphId FROM CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
    ),
}
"""Of each table: six columns that all have, then what tells one operation from another."""
PUSHED_RANGES: Final = (
    "SELECT start, end, CAST(coalesce(text, StringIds.value) AS TEXT) FROM NVTX_EVENTS LEFT JOIN StringIds ON StringIds.id = textId"
    " WHERE globalTid = ? AND eventType = 59 AND typeof(start) = 'integer' AND typeof(end) = 'integer' AND end >= start"
)
"""`NvtxPushPopRange`: they nest within their thread; ranges of the other kind may end on another."""
THREAD_BITS: Final = 24
PROCESS_MASK: Final = 0xFFFFFF
CORRELATION_BITS: Final = 32
"""CUPTI counts correlation ids in 32 bits, of each process on its own."""
DEVICE_BITS: Final = 16
DEVICES_MAX: Final = 1 << DEVICE_BITS
"""CUPTI gives 2,147,483,647 as the device of a graph whose first node runs on the host."""
PROGRESS_ROWS: Final = 20_000


def nsight_profile(path: Path, on_progress: Callable[[int], None] = lambda _: None) -> Profile:
    """One export, read whole. `on_progress` is told how many bytes of the file are done, by the share of its rows.

    Raises:
        TraceUnreadableError: see `Export`.
        TraceMalformedError: a row that matters has something else for a time or an id.
    """
    with Export(path) as export:
        profile = Profile(path, "nsight")
        profile.content_digest = export.digest()
        reader = _Reader(export, profile, on_progress)
        reader.read()
        return profile


class _Reader:
    """Fills a profile's columns, table by table."""

    def __init__(self, export: Export, profile: Profile, on_progress: Callable[[int], None]) -> None:
        self._export = export
        self._profile = profile
        self._on_progress = on_progress
        self._processes: dict[int, int] = {}
        """Number of each process in this file, by its id without the thread's bits."""
        self._shapes: dict[tuple[Any, ...], int] = {}
        self._threads: dict[int, tuple[str, str]] = {}
        self._origin_ns = 0
        self._rows_done = 0
        self._rows_all = 0

    def read(self) -> None:
        self._take_session()
        tables = [table for table in (RUNTIME, *OPERATIONS) if table in self._export.tables]
        self._rows_all = sum(self._export.all(f"SELECT max(rowid) FROM {table}")[0][0] or 0 for table in tables)  # noqa: S608
        self._profile.contents = f"{self._rows_all:,} CUDA calls and device operations"
        for table in tables:
            self._read_table(table)
        self._name_shapes()
        self._take_ranges()
        self._take_places()
        self._on_progress(self._export.path.stat().st_size)

    def _take_session(self) -> None:
        meta = dict(self._export.all_of("META_DATA_EXPORT", "SELECT name, value FROM META_DATA_EXPORT"))
        table = "TARGET_INFO_SESSION_START_TIME"
        start = next(iter(self._export.all_of(table, f"SELECT utcEpochNs FROM {table}")), (None,))[0]  # noqa: S608
        if isinstance(start, int) and 0 <= start < 2**62:
            self._origin_ns = start
            self._profile.base_time_ns = 0  # Added while reading.
        self._profile.base_time_name = f"{table}.utcEpochNs"
        self._profile.facts = {
            "trace_base_time_ns": str(self._origin_ns) if self._origin_ns else "",
            "nsys_version": str(meta.get("EXPORT_PRODUCT_VERSION") or ""),
            "nsys_schema_version": str(meta.get("EXPORT_SCHEMA_VERSION") or ""),
        }

    def _read_table(self, table: str) -> None:
        take, query = (
            (self._call_taker(), CALLS) if table == RUNTIME else (self._operation_taker(table), OPERATIONS[table])
        )
        for number, row in enumerate(self._counted(self._export.rows(query))):
            try:
                take(*row)
            except (TypeError, OverflowError) as error:
                raise TraceMalformedError(
                    f"{self._export.path}: row {number:,} of {table} has no usable time or id ({error}); "
                    "nothing was imported"
                ) from error

    def _counted(self, rows: Iterator[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
        size_bytes = self._export.path.stat().st_size
        for row in rows:
            yield row
            self._rows_done += 1
            if self._rows_done % PROGRESS_ROWS == 0:
                self._on_progress(size_bytes * self._rows_done // max(self._rows_all, self._rows_done))

    def _call_taker(self) -> Callable[..., None]:
        names = self._export.all("SELECT id, CAST(value AS TEXT) FROM StringIds WHERE value LIKE '%GraphLaunch%'")
        launching = {number for number, name in names if GRAPH_LAUNCH.fullmatch(name)}
        calls, launches, origin_ns = self._profile.host_calls, self._profile.launches, self._origin_ns

        def take(start: int, end: int, thread: int, correlation: int, name: int) -> None:
            key = self._key(thread, correlation)
            calls.correlation.append(key)
            calls.started_at.append(start + origin_ns)
            if name in launching:
                launches.append(LaunchCall(key, start + origin_ns, end + origin_ns, self._thread(thread)))

        return take

    def _operation_taker(self, table: str) -> Callable[..., None]:
        profile, origin_ns, whole = self._profile, self._origin_ns, table == GRAPHS
        append, shapes = profile.operations.append, self._shapes

        def take(start: int, end: int, process: int, correlation: int | None, *where: Any) -> None:
            device, stream, *shape = where
            key = None if correlation is None else self._key(process, correlation)
            # CUPTI gives 0 where it could not collect a time.
            if end < start or not end:
                self._leave_out(key, Skip.NO_TIME)
            elif not 0 <= device < DEVICES_MAX:
                self._leave_out(key, Skip.NO_DEVICE)
            else:
                place = self._process(process) << DEVICE_BITS | device
                number = shapes.setdefault((whole, *shape), len(shapes))
                append(start + origin_ns, end + origin_ns, key, place=place, stream=stream, shape=number)

        return take

    def _leave_out(self, key: int | None, reason: Skip) -> None:
        self._profile.left_out[reason] += 1
        if key is not None:
            self._profile.unusable[key] = reason

    def _process(self, serialized: int) -> int:
        return self._processes.setdefault(serialized >> THREAD_BITS, len(self._processes))

    def _key(self, serialized: int, correlation: int) -> int:
        if not 0 <= correlation < 1 << CORRELATION_BITS:
            raise OverflowError(f"correlation id {correlation}")
        return self._process(serialized) << CORRELATION_BITS | correlation

    def _thread(self, serialized: int) -> tuple[str, str]:
        thread = (str(serialized >> THREAD_BITS), str(serialized))
        return self._threads.setdefault(serialized, thread)

    def _name_shapes(self) -> None:
        for (whole, first, *rest), number in self._shapes.items():
            if whole:
                self._profile.whole_graphs[number] = str(first)
            name = self._export.text(first) if isinstance(first, int) and not whole else str(first)
            self._profile.shapes.append(f"{name} {rest[:3] or None} {rest[3:] or None}")

    def _take_ranges(self) -> None:
        known: dict[str, str] = {}
        for serialized, thread in self._threads.items():
            ranges = [
                Annotation(start + self._origin_ns, end + self._origin_ns, known.setdefault(text, text))
                for start, end, text in self._export.all_of(RANGES, PUSHED_RANGES, serialized)
                if text
            ]
            if ranges:
                self._profile.annotations[thread] = ranges

    def _take_places(self) -> None:
        gpus = {
            (pid, device): gpu
            for pid, device, gpu in self._export.all_of(
                "TARGET_INFO_CUDA_DEVICE", "SELECT pid, cudaId, gpuId FROM TARGET_INFO_CUDA_DEVICE"
            )
        }
        names = dict(self._export.all_of("TARGET_INFO_GPU", "SELECT id, name FROM TARGET_INFO_GPU"))
        processes = dict(self._export.all_of("PROCESSES", "SELECT globalPid >> 24, name FROM PROCESSES"))
        serialized = list(self._processes)
        for key in set(self._profile.operations.place):
            process, device = serialized[key >> DEVICE_BITS], key & (DEVICES_MAX - 1)
            pid = process & PROCESS_MASK
            gpu = gpus.get((pid, device))
            facts = {
                "gpu_name": str(names.get(gpu) or "") if gpu is not None else "",
                "process_id": str(pid),
                "process_name": str(processes.get(process) or ""),
            }
            label = f"pid{pid}-gpu{device}"
            self._profile.places[key] = Place(device, label, str(device if gpu is None else gpu), facts)
