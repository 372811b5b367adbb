"""The executions of a record as columns, and what follows from their order."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from engine_hooks.contract.execution import GraphExecution
from engine_hooks.contract.names import DECODING_KINDS, GraphKind, Purpose
from queries.findings.record import CellRecord
from queries.known_by_then import Knowledge, knowledge_of

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

BIN_NS: Final = 500_000_000
"""Costs are worked out half-second by half-second."""
KEPT_BEFORE_NS: Final = 5_000_000_000
"""All executions this long before the cell are used, and of each graph ..."""
KEPT_BEFORE_EACH: Final = 64
"""... its last so many, however long ago."""
IDLE_UNMARKED_NS: Final = 200_000_000
"""A free host that submits nothing for this long had no work, even if the sender does not mark it so ..."""
IDLE_UNMARKED_AFTER_FEEDBACK_NS: Final = 1_000_000_000
"""... and where it had results to wait for, a stumble cannot be told from no work until this long, ..."""
ROUND_NS: Final = 100_000_000
"""... to which comes so much for each execution that was lost meanwhile."""
PAUSED_NS: Final = 5_000_000
"""A free host that submits nothing for this long has paused."""
SEEN_AT_ONCE_NS: Final = 1_000_000
"""Device time between an end and a submission in which the host had not seen that end: up to so long it had waited for it."""


@dataclass(frozen=True)
class Timeline:
    """Executions in order, the cell's and those kept from before it. Times are nanoseconds."""

    executions: tuple[GraphExecution, ...]
    in_cell: Bools
    names: tuple[str, ...]
    """Of all graphs executed or to choose from; `graph` and every matrix of graphs count by it."""
    graph: Ints
    sequence: Ints
    started: Ints
    observed: Ints
    gpu: Ints
    wall: Ints
    """As its sender measured it."""
    gap: Ints
    """Idle time of the device before the execution; 0 where the engine had no work."""
    needed: Bools
    """Completion feedback as the sender marks it."""
    feedback: Bools
    """The next submission waited for its results, whether or not the sender marks it so."""
    idle: Bools
    """The engine had no work before, whether or not the sender marked it."""
    host: Ints
    """Time the host took to submit the round, from when it could begin; -1 where that cannot be told."""
    decoding: Bools
    speculative: Bools
    ordinary: Bools
    knowledge: Knowledge
    """Which executions a decision knew."""
    service_instance_id: str
    drafts: Ints
    """Of a speculative round: GPU time of the draft executions before it that are its own; else 0."""
    first: Ints
    """The row at which the round begins: of the first of those, else its own."""

    @property
    def round_gpu(self) -> Ints:
        """GPU time of the round, that of its drafts included."""
        return self.gpu + self.drafts

    @cached_property
    def bins(self) -> Ints:
        """Half-second of each execution, counted from the first one of the cell; negative before it."""
        return np.asarray((self.started - self.since_ns) // BIN_NS, dtype=np.int64)

    @property
    def bin_ns(self) -> int:
        """Length of a bin."""
        return BIN_NS

    @cached_property
    def since_ns(self) -> int:
        """First submission of the cell."""
        return int(self.started[self.in_cell][0])

    @cached_property
    def begins_in_mid_run(self) -> bool:
        """The engine had run before the cell, by its submission numbers."""
        return int(self.sequence[self.in_cell][0]) > 0

    @cached_property
    def until_ns(self) -> int:
        """Last observed completion of the cell."""
        return int(self.observed[self.in_cell].max())

    @property
    def seconds(self) -> float:
        """Length of the cell."""
        return (self.until_ns - self.since_ns) / 1e9

    def graph_numbered(self, name: str) -> int:
        """The number of a graph."""
        return self.names.index(name)


def timeline_of(record: CellRecord) -> Timeline:
    """The timeline of a record; its cell must hold at least one execution."""
    before = _kept(record.before, record.executions[0].started_at)
    executions = (*before, *record.executions)
    names = sorted({e.graph_name for e in executions}.union(*(e.scheduler_candidate_graphs for e in executions)))
    number = {name: n for n, name in enumerate(names)}
    sequence = _ints(e.graph_sequence for e in executions)
    started = _ints(e.started_at for e in executions)
    observed = started + _ints(e.duration_ns for e in executions)
    needed = _bools(e.graph_completion_feedback for e in executions)
    marked = _bools(e.graph_after_idle for e in executions)
    drained = _bools(e.graph_queue_depth in (0, None) for e in executions)
    ordinary = _bools(e.graph_purpose == Purpose.ORDINARY for e in executions)
    knowledge = knowledge_of((*record.before, *record.executions))
    is_known = np.array([False, *(knowledge.has(*pair[::-1]) for pair in pairwise(executions))])
    gpu = _ints(e.graph_gpu_time_ns for e in executions)
    wall = _ints(e.graph_wall_time_ns for e in executions)
    gap = np.minimum(np.maximum(wall - gpu, 0), _device_idle(executions, sequence, started, gpu))
    waited = (is_known | _at_once(started, observed)) & drained & _seen_at_once(sequence, started, observed, gap)
    idle = _idle_unmarked(sequence, started, observed, needed, drained) & ~marked
    if idle.any() and not marked[1:].any():
        idle |= _paused(started, observed, waited & ordinary & ~_after(needed))
    idle |= marked
    host = _host_times(sequence, started, observed, idle, waited | (_after(needed) | ~ordinary) & is_known)
    return Timeline(
        executions=executions,
        in_cell=np.arange(len(executions)) >= len(before),
        names=tuple(names),
        graph=_ints(number[e.graph_name] for e in executions),
        sequence=sequence,
        started=started,
        observed=observed,
        gpu=gpu,
        wall=wall,
        gap=np.where(idle, 0, gap),
        needed=needed,
        feedback=needed | np.append(waited[1:] & ~idle[1:] & ordinary[1:], False),
        idle=idle,
        host=np.where(_bools(map(_replayed, executions)), -1, host),
        decoding=_bools(e.graph_kind in DECODING_KINDS for e in executions),
        speculative=_bools(e.graph_kind == GraphKind.SPECULATIVE for e in executions),
        ordinary=ordinary,
        knowledge=knowledge,
        service_instance_id=record.service_instance_id,
        drafts=np.zeros(len(executions), dtype=np.int64),
        first=np.arange(len(executions)),
    )


def _kept(before: Sequence[GraphExecution], cell_from: int) -> list[GraphExecution]:
    """What is used of the time before the cell."""
    left: dict[str, int] = {}
    kept = []
    for execution in reversed(before):
        left[execution.graph_name] = left.get(execution.graph_name, KEPT_BEFORE_EACH) - 1
        if left[execution.graph_name] >= 0 or execution.started_at >= cell_from - KEPT_BEFORE_NS:
            kept.append(execution)
    return kept[::-1]


def _idle_unmarked(sequence: Ints, started: Ints, observed: Ints, feedback: Bools, drained: Bools) -> Bools:
    """Nothing was in flight, and the host was free: it had seen the round before end, and then waited.

    A host that stumbles sees that end only after it has submitted.
    """
    waited = started[1:] - np.maximum(observed[:-1], started[:-1])
    enough = np.where(feedback[:-1], IDLE_UNMARKED_AFTER_FEEDBACK_NS, IDLE_UNMARKED_NS)
    lost = sequence[1:] - sequence[:-1] - 1
    enough = np.where(lost > 0, IDLE_UNMARKED_AFTER_FEEDBACK_NS + lost * ROUND_NS, enough)
    return np.concatenate(([False], drained[1:] & (waited >= enough)))


def _device_idle(executions: Sequence[GraphExecution], sequence: Ints, started: Ints, gpu: Ints) -> Ints:
    """How long the device ran nothing before each execution: the complement of the union of all busy intervals.

    A sender may measure a gap on one stream while another was busy. Where device starts are not recorded, or the
    execution before was lost, nothing is known: as long as can be.
    """
    offset = _ints(-1 if e.graph_gpu_start_offset_ns is None else e.graph_gpu_start_offset_ns for e in executions)
    starts = started + np.maximum(offset, 0)
    busy_until = np.maximum.accumulate(starts + gpu)
    known = (sequence[1:] == sequence[:-1] + 1) & (offset[1:] >= 0) & (offset[:-1] >= 0)
    unknown = np.iinfo(np.int64).max
    idle = np.where(known, np.maximum(starts[1:] - busy_until[:-1], 0), unknown)
    return np.concatenate(([0], idle))  # of the first nothing can be told


def _replayed(execution: GraphExecution) -> bool:
    """A replay at start-up: it says nothing of a host that serves."""
    return execution.graph_purpose == Purpose.REFRESH and not execution.scheduler_candidate_graphs


def _paused(started: Ints, observed: Ints, waited: Bools) -> Bools:
    """Shorter pauses of an engine that marks none, and had some long ones: the two are of one kind, for all one can tell.

    Not of one that keeps one in flight at a time: there every round comes after such a pause.
    """
    paused = waited & (started - np.concatenate((started[:1], observed[:-1])) >= PAUSED_NS)
    return paused & (2 * int(waited.sum()) < len(waited))


def _at_once(started: Ints, observed: Ints) -> Bools:
    """Submitted at the very instant at which the one before was observed."""
    return np.concatenate(([False], observed[:-1] == started[1:]))


def _after(which: Bools) -> Bools:
    """Those that follow one of these."""
    return np.concatenate(([False], which[:-1]))


def _seen_at_once(sequence: Ints, started: Ints, observed: Ints, gap: Ints) -> Bools:
    """The host saw the execution before as soon as it ended, so that it was free, and may have waited for that end.

    Then the device idles for what the host does after it. A host that was late saw that end as it submitted, or later.
    """
    unseen = gap[1:] - (started[1:] - observed[:-1])
    return np.concatenate(([False], (sequence[1:] == sequence[:-1] + 1) & (unseen <= SEEN_AT_ONCE_NS)))


def _host_times(sequence: Ints, started: Ints, observed: Ints, idle: Bools, waits: Bools) -> Ints:
    """With two in flight the host can begin once it has submitted the round before and seen the one before that end.

    Where it `waits` it begins once it has seen the round before end: after completion feedback, for start-up replays,
    and where it let the queue drain.
    """
    host = np.full(len(started), -1, dtype=np.int64)
    if len(started) < 3:
        return host
    seen = np.where(waits[2:], observed[1:-1], observed[:-2])
    known = (sequence[2:] == sequence[:-2] + 2) & ~idle[2:]
    host[2:] = np.where(known, np.maximum(started[2:] - np.maximum(seen, started[1:-1]), 0), -1)
    return host


def _ints(values: Any) -> Ints:
    return np.fromiter(values, dtype=np.int64)


def _bools(values: Any) -> Bools:
    return np.fromiter(values, dtype=np.bool_)
