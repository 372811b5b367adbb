"""From the columns of a trace to executions: which operations a launch caused, and what was pending before it.

Definitions (`docs/importing.md`):
    GPU time      first start to last end of the device operations with the launch's correlation id
    duration      start of the launch call to that last end
    wall time     end of the previous device operation of the stream to that last end; from the
                  launch call where the trace holds no earlier operation of the stream (`after_idle`)
    queue depth   submissions to the device called earlier and not ended when the launch was called
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine_hooks.adapters.kineto.annotations import enclosing_names
from engine_hooks.adapters.kineto.trace import LaunchCall, Trace
from engine_hooks.contract.execution import GraphExecution
from engine_hooks.contract.names import GpuTimeSource, GraphKind

Times = NDArray[np.int64]

UNNAMED: Final = "graph"
SIGNATURE_DIGITS: Final = 4


class Skip(StrEnum):
    """Why a launch became no execution."""

    NO_OPERATIONS = "no device operations"
    """The trace ended before the graph ran, or its device was not recorded."""
    AMBIGUOUS = "correlation id used twice"
    """Traces of several processes in one file: whose operations these are cannot be told."""


class Device:
    """The operations of one device, ordered and grouped so that each question is a binary search. Times in ns."""

    def __init__(self, trace: Trace, device: int) -> None:
        columns = trace.operations
        mask = np.frombuffer(columns.device, dtype=np.int64) == device
        started_at, ended_at, correlation, stream, shape = (
            np.frombuffer(column, dtype=np.int64)[mask]
            for column in (columns.started_at, columns.ended_at, columns.correlation, columns.stream, columns.shape)
        )
        order = np.lexsort((ended_at, started_at, correlation))
        self.started_at, self.ended_at = started_at[order], ended_at[order]
        self.stream, self.shape = stream[order], shape[order]
        self.correlations, self.first = np.unique(correlation[order], return_index=True)
        self.group_start = self.started_at[self.first]
        self.group_end = np.maximum.reduceat(self.ended_at, self.first)
        self.group_stream = self.stream[self.first]
        self.submitted_at, self.recorded = _submission_times(trace, self.correlations)
        self._streams = {int(number): _Stream(self, int(number)) for number in np.unique(self.stream)}
        known = self.recorded
        self._submitted = np.sort(self.submitted_at[known])
        # An end before its own submission is clock trouble; the pair must still cancel out.
        self._finished = np.sort(np.maximum(self.group_end[known], self.submitted_at[known] + 1))

    @property
    def operations_without_launch(self) -> int:
        """Operations whose launch call the trace does not hold."""
        sizes = np.diff(np.append(self.first, len(self.started_at)))
        return int(sizes[~self.recorded].sum())

    def run_of(self, correlation: int) -> "Run | None":
        """What a launch did on this device; None where it did nothing."""
        group = int(np.searchsorted(self.correlations, correlation))
        if group == len(self.correlations) or self.correlations[group] != correlation:
            return None
        first = int(self.first[group])
        last = int(self.first[group + 1]) if group + 1 < len(self.first) else len(self.started_at)
        return Run(
            int(self.group_start[group]),
            int(self.group_end[group]),
            int(self.group_stream[group]),
            tuple(np.sort(self.shape[first:last]).tolist()),
        )

    def queue_depth(self, launched_at: int, run: "Run") -> int:
        """Submissions called before this launch and not ended when it was called."""
        recorded = np.searchsorted(self._submitted, launched_at, "left") - np.searchsorted(
            self._finished, launched_at, "right"
        )
        return int(recorded) + self._streams[run.stream].pending_unrecorded(launched_at, run.started_at)

    def free_at(self, run: "Run") -> int | None:
        """End of the stream's previous operation, at most the run's own start; None where there is none."""
        return self._streams[run.stream].free_before(run.started_at)


class Run(NamedTuple):
    """A graph launch's operations on one device. Times in ns."""

    started_at: int
    ended_at: int
    stream: int
    """The stream of its first operation."""
    shapes: tuple[int, ...]
    """Of each operation, sorted."""


class _Stream:
    """One stream: its operations run in the order of their submission."""

    def __init__(self, device: Device, number: int) -> None:
        own = device.stream == number
        order = np.argsort(device.started_at[own], kind="stable")
        self._started = device.started_at[own][order]
        self._latest_end = np.maximum.accumulate(device.ended_at[own][order])
        unrecorded = ~device.recorded & (device.group_stream == number)
        start = device.group_start[unrecorded]
        self._unrecorded_start = np.sort(start)
        self._unrecorded_end = np.sort(np.maximum(device.group_end[unrecorded], start + 1))

    def free_before(self, started_at: int) -> int | None:
        """The latest end among operations that started earlier, at most `started_at`."""
        earlier = int(np.searchsorted(self._started, started_at, "left"))
        return min(int(self._latest_end[earlier - 1]), started_at) if earlier else None

    def pending_unrecorded(self, launched_at: int, started_at: int) -> int:
        """Submissions whose call the trace lacks, but which ran before `started_at` and ended after the launch.

        The stream's order proves that they were submitted earlier: most were, before the profiler started.
        """
        before = np.searchsorted(self._unrecorded_start, max(launched_at, started_at), "left")
        return int(before - np.searchsorted(self._unrecorded_end, launched_at, "right")) if before else 0


def _submission_times(trace: Trace, correlations: Times) -> tuple[Times, NDArray[np.bool_]]:
    """When each correlation id's call started, and whether the trace holds that call."""
    ids = np.frombuffer(trace.host_calls.correlation, dtype=np.int64)
    started_at = np.frombuffer(trace.host_calls.started_at, dtype=np.int64)
    if not len(ids):
        return np.zeros(len(correlations), np.int64), np.zeros(len(correlations), np.bool_)
    order = np.lexsort((started_at, ids))
    ids, first = np.unique(ids[order], return_index=True)
    place = np.minimum(np.searchsorted(ids, correlations), len(ids) - 1)
    return started_at[order][first][place], ids[place] == correlations


class Launches(NamedTuple):
    """The graph executions of one trace, and what was left out."""

    by_device: dict[int, list[GraphExecution]]
    skipped: Counter[Skip]
    operations: int
    operations_without_launch: int


def launches_of(trace: Trace, kind: GraphKind) -> Launches:
    """Every graph launch of a trace as an execution, by device, in the order of launch. Times as the file has them."""
    calls, skipped = _distinct(trace.launches)
    names = enclosing_names(trace.annotations, calls)
    devices = {int(number): Device(trace, int(number)) for number in sorted(set(trace.operations.device))}
    by_device: dict[int, list[GraphExecution]] = {number: [] for number in devices}
    signatures = _Signatures(trace.shapes)
    for call, name in zip(calls, names, strict=True):
        runs = [(number, run) for number, device in devices.items() if (run := device.run_of(call.correlation))]
        if not runs:
            skipped[Skip.NO_OPERATIONS] += 1
        for number, run in runs:
            graph_name = f"{name or UNNAMED}-{len(run.shapes)}-ops-{signatures.of(run.shapes)}"
            sequence = len(by_device[number])
            by_device[number].append(
                _execution(call, run, devices[number], graph_name=graph_name, kind=kind, sequence=sequence)
            )
    return Launches(
        {number: executions for number, executions in by_device.items() if executions},
        skipped,
        len(trace.operations.started_at),
        sum(device.operations_without_launch for device in devices.values()),
    )


def _execution(
    call: LaunchCall, run: Run, device: Device, *, graph_name: str, kind: GraphKind, sequence: int
) -> GraphExecution:
    free_at = device.free_at(run)
    return GraphExecution(
        graph_name=graph_name,
        graph_kind=kind,
        graph_sequence=sequence,
        graph_gpu_time_ns=run.ended_at - run.started_at,
        graph_wall_time_ns=run.ended_at - (min(call.started_at, run.started_at) if free_at is None else free_at),
        started_at=call.started_at,
        duration_ns=run.ended_at - call.started_at,
        graph_gpu_start_offset_ns=run.started_at - call.started_at,
        graph_gpu_time_source=GpuTimeSource.PROFILER,
        graph_queue_depth=device.queue_depth(call.started_at, run),
        graph_after_idle=free_at is None,
    )


def _distinct(launches: Iterable[LaunchCall]) -> tuple[list[LaunchCall], Counter[Skip]]:
    """Launches in the order of their calls, one for each correlation id.

    A runtime call and the driver call inside it may both be recorded under one id: the outer one counts.
    """
    by_correlation: dict[int, list[LaunchCall]] = {}
    for launch in sorted(launches, key=lambda call: (call.started_at, -call.ended_at, call.correlation)):
        by_correlation.setdefault(launch.correlation, []).append(launch)
    skipped: Counter[Skip] = Counter()
    calls = []
    for outer, *others in by_correlation.values():
        if all(other.thread == outer.thread and other.ended_at <= outer.ended_at for other in others):
            calls.append(outer)
        else:
            skipped[Skip.AMBIGUOUS] += 1 + len(others)
    return calls, skipped


class _Signatures:
    """A short digest of which operations a graph consists of: equal graphs, equal digests, in every file."""

    def __init__(self, shapes: Sequence[str]) -> None:
        self._shapes = shapes
        self._known: dict[tuple[int, ...], str] = {}

    def of(self, shapes: tuple[int, ...]) -> str:
        if shapes not in self._known:
            text = "\n".join(sorted(self._shapes[shape] for shape in shapes))
            self._known[shapes] = hashlib.sha256(text.encode()).hexdigest()[:SIGNATURE_DIGITS]
        return self._known[shapes]
