"""A record by rounds: draft executions as part of the speculative rounds that verify their drafts.

What a cost model charges, and what the simulator runs, is a round. Without draft executions a record stays as it is.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from engine_hooks.contract.drafting import drafts_by_round, with_drafts
from engine_hooks.contract.execution import GraphExecution
from queries.record import CellExecutions
from queries.replay.result import ExactReplay


class ByRounds(NamedTuple):
    """A cell whose executions are rounds."""

    cell: CellExecutions
    """Numbered anew, so that only what was lost is missing; queue depths count rounds."""
    recorded: Mapping[int, int]
    """By new number, the recorded one; empty where nothing changed."""
    drafting: int
    """Rounds of the cell that drafts went into."""


def by_rounds(cell: CellExecutions) -> ByRounds:
    """Put each speculative round and its drafts together."""
    everything = (*cell.before, *cell.executions)
    rounds = drafts_by_round(everything)
    if not rounds:
        return ByRounds(cell, {}, 0)
    owner = {draft: place for place, drafts in rounds.items() for draft in drafts}
    lost = 0
    kept: list[tuple[int, GraphExecution]] = []
    for place, execution in enumerate(everything):
        lost += max(execution.graph_sequence - everything[place - 1].graph_sequence - 1, 0) if place else 0
        if place not in owner:
            number = everything[0].graph_sequence + len(kept) + lost
            whole = _round(everything, place, rounds.get(place, ()), owner)
            kept.append((place, whole._replace(graph_sequence=number)))
    before = tuple(one for place, one in kept if place < len(cell.before))
    executions = tuple(one for place, one in kept if place >= len(cell.before))
    recorded = {one.graph_sequence: everything[place].graph_sequence for place, one in kept}
    drafting = sum(place >= len(cell.before) for place in rounds)
    return ByRounds(cell._replace(before=before, executions=executions), recorded, drafting)


def as_recorded(exact: ExactReplay, rounds: ByRounds) -> ExactReplay:
    """The decisions under the submission numbers of the record."""
    if not rounds.recorded:
        return exact
    decisions = tuple(one._replace(graph_sequence=rounds.recorded[one.graph_sequence]) for one in exact.decisions)
    return exact._replace(decisions=decisions)


def _round(
    everything: Sequence[GraphExecution], place: int, drafts: tuple[int, ...], owner: Mapping[int, int]
) -> GraphExecution:
    execution = everything[place]
    first = place
    if drafts and drafts[0] == place - len(drafts):
        first = drafts[0]
        execution = with_drafts(execution, [everything[draft] for draft in drafts])
    elif drafts:  # something else ran in between: the round is as long, and begins where it does
        execution = execution._replace(
            graph_gpu_time_ns=execution.graph_gpu_time_ns + sum(everything[n].graph_gpu_time_ns for n in drafts),
            graph_wall_time_ns=execution.graph_wall_time_ns + sum(everything[n].graph_wall_time_ns for n in drafts),
        )
    depth = execution.graph_queue_depth
    if depth:
        depth = len({owner.get(n, n) for n in range(max(first - depth, 0), first)})
    return execution._replace(graph_queue_depth=depth)
