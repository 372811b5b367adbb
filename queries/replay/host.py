"""What the host did, seen from a record: how long it planned each round, where it stumbled, what it takes to notice."""

from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine_hooks.contract.execution import GraphExecution
from engine_hooks.contract.names import GraphKind
from engine_hooks.simulator.parameters import Rounds
from queries.known_by_then import observed_at
from queries.replay.stretches import Floats

STUMBLE_TIMES: Final = 3.0
"""A round planned more than so many times as long as those around it is a stumble …"""
STUMBLE_MIN_NS: Final = 5_000_000
"""… if it took so much longer, too."""
AROUND: Final = 15
"""Rounds around one that say what is usual: bursts of up to seven do not hide themselves."""
CONVICTED: Final = 3
"""So many late rounds of a kind with none on time after them are no stumbles."""
BY_CHANCE: Final = 0.2
"""Stumbles that all met speculative rounds, with at most this chance if they met any, meet only those."""


class Planned(NamedTuple):
    """One round that the scheduler chose, and what the host took for it."""

    execution: GraphExecution
    from_ns: int
    """When the host could start on it, in Unix nanoseconds."""
    planning_ns: int


class Sorted(NamedTuple):
    """A cell's planned rounds."""

    steady: list[Planned]
    stumbles: list["Stumble"]
    slow: list[Planned]
    """The last rounds of a kind, all of them late: the host was slow with it from then on."""


class Stumble(NamedTuple):
    """A round that the host came late with, once."""

    planned: Planned
    late_ns: int
    """Beyond what was usual then."""


def ended_at(execution: GraphExecution) -> int:
    """When it ended on the device, in Unix nanoseconds; when that was observed, where the record does not say."""
    if execution.graph_gpu_start_offset_ns is None:
        return observed_at(execution)
    return execution.started_at + execution.graph_gpu_start_offset_ns + execution.graph_gpu_time_ns


def notify_ns_of(executions: Sequence[GraphExecution]) -> int:
    """From the end on the device until the host may observe it: the shortest there was, but for the odd clock."""
    waits = [observed_at(one) - ended_at(one) for one in executions]
    return max(int(np.percentile(waits, 1)), 0) if waits else 0


def launch_ns_of(executions: Sequence[GraphExecution]) -> int:
    """From submission to the start on a drained device."""
    offsets = [one.graph_gpu_start_offset_ns for one in executions if one.graph_queue_depth == 0]
    known = [offset for offset in offsets if offset is not None]
    return max(int(np.median(known)), 0) if known else 0


def planned_rounds(executions: Sequence[GraphExecution]) -> Iterator[Planned]:
    """The chosen rounds whose planning can be told: no idle time and no lost record in between.

    The host starts on a round when it has submitted the one before and observed the one before that; with
    completion feedback, when it has observed the one before.
    """
    for earlier, before, execution in zip(executions, executions[1:], executions[2:], strict=False):
        follows = execution.graph_sequence - earlier.graph_sequence == 2
        if not follows or execution.graph_after_idle or not execution.scheduler_candidate_graphs:
            continue
        awaited = before if before.graph_completion_feedback else earlier
        from_ns = max(before.started_at, observed_at(awaited))
        yield Planned(execution, from_ns, max(execution.started_at - from_ns, 1))


def sorted_by_lateness(planned: Sequence[Planned]) -> Sorted:
    """Tell rounds planned as usual from the host's stumbles, and from a host that was slow in the end.

    What is usual follows the rounds around, of any kind, each against the median of its own: a burst on the last
    speculative rounds before a long time of plain decode is one, although no speculative round soon shows it over.
    """
    kind_ns = {
        kind: float(np.median([one.planning_ns for one in planned if one.execution.graph_kind == kind]))
        for kind in {one.execution.graph_kind for one in planned}
    }
    usual_ns = np.array([kind_ns[one.execution.graph_kind] for one in planned])
    planning_ns = np.array([one.planning_ns for one in planned], dtype=float)
    usual_ns *= running_median(planning_ns / usual_ns)
    stumbled = (planning_ns > STUMBLE_TIMES * usual_ns) & (planning_ns > usual_ns + STUMBLE_MIN_NS)
    slow = {n for kind in kind_ns for n in late_at_last(planned, stumbled, kind)}
    return Sorted(
        [one for one, is_stumble in zip(planned, stumbled, strict=True) if not is_stumble],
        [
            Stumble(planned[n], int(planning_ns[n] - usual_ns[n]))
            for n in np.flatnonzero(stumbled).tolist()
            if n not in slow
        ],
        [planned[n] for n in sorted(slow)],
    )


def late_at_last(planned: Sequence[Planned], late: NDArray[np.bool_], kind: GraphKind) -> list[int]:
    """Numbers of the last rounds of a kind, if so many of them were late that the host is slow with it.

    A stumble, or a burst of them, is followed by rounds on time: those that were decided on before it was known.
    """
    numbers = [n for n, one in enumerate(planned) if one.execution.graph_kind == kind]
    run = list(takewhile(lambda n: late[n], reversed(numbers)))
    return run if len(run) >= CONVICTED else []


def running_median(values: Floats) -> Floats:
    """Of each value and those around it, `AROUND` in all."""
    if len(values) < AROUND:
        return np.full(len(values), np.median(values) if len(values) else 1.0)
    windows = np.lib.stride_tricks.sliding_window_view(values, AROUND)
    return np.pad(np.median(windows, axis=1), AROUND // 2, mode="edge")


def rounds_met(speculative: int, plain: int, speculative_share: float) -> Rounds:
    """Which rounds the stumbles meet, from how many met each kind and the share of decoding that was speculative."""
    only_speculative = speculative and not plain and speculative_share**speculative <= BY_CHANCE
    return Rounds.SPECULATIVE if only_speculative else Rounds.ALL


def is_speculative(execution: GraphExecution) -> bool:
    """Whether it verified drafts."""
    return execution.graph_kind == GraphKind.SPECULATIVE
