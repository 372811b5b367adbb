"""What the host did, seen from a record: how long it planned each round, where it stumbled, what it takes to notice."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from engine_hooks.contract.execution import GraphExecution
from engine_hooks.contract.names import GraphKind
from engine_hooks.simulator.parameters import Rounds
from queries.replay.exact import observed_at
from queries.replay.stretches import Floats

STUMBLE_TIMES: Final = 3.0
"""A round planned more than so many times as long as those around it is a stumble …"""
STUMBLE_MIN_NS: Final = 5_000_000
"""… if it took so much longer, too."""
AROUND: Final = 15
"""Rounds around one that say what is usual: bursts of up to seven do not hide themselves."""
BY_CHANCE: Final = 0.2
"""Stumbles that all met speculative rounds, with at most this chance if they met any, meet only those."""


class Planned(NamedTuple):
    """One round that the scheduler chose, and what the host took for it."""

    execution: GraphExecution
    from_ns: int
    """When the host could start on it, in Unix nanoseconds."""
    planning_ns: int


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


def without_stumbles(planned: Sequence[Planned]) -> tuple[list[Planned], list[Stumble]]:
    """The rounds planned as usual, and the host's stumbles.

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
    steady = [one for one, is_stumble in zip(planned, stumbled, strict=True) if not is_stumble]
    return steady, [Stumble(planned[n], int(planning_ns[n] - usual_ns[n])) for n in np.flatnonzero(stumbled).tolist()]


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
