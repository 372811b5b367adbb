"""How far drafts are accepted in a cell, by depth and in time, and what its scheduler believed of it at first."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from engine_hooks.contract.execution import GraphExecution
from engine_hooks.scheduler.graphs import Drafts, drafts_under
from engine_hooks.scheduler.scheduler import SchedulerSettings
from queries.replay.drafts import Verified, accepted_tokens, by_depth, fall_off_of, merged, rate_of
from queries.replay.exact import can_be_taken_again
from queries.replay.stretches import Steps, stretches_of

UNKNOWN: Final = 0.6
"""Acceptance where the record shows no draft and no belief."""


class Acceptance(NamedTuple):
    """Acceptance of drafts in a cell."""

    rate: Steps
    """At the first depth."""
    factors: tuple[float, ...]
    """On the rate, by depth from the first on."""
    believed: tuple[float, ...]
    """What the scheduler believed by depth at the first decision."""
    error: float
    """Standard error of the tokens accepted a speculative round, over their mean; of the sampling alone."""


def acceptance_of(chosen: Sequence[GraphExecution], lanes: int) -> Acceptance:
    """Fit the decoding rounds of a cell, in the order of submission."""
    verified = [one for one in chosen if one.batch_tokens_drafted]
    believed = believed_at_first(chosen, lanes)
    fall_off = fall_off_of([*merged(by_drafts(verified)), *believed])
    factors = by_depth(fall_off)
    believed_rate = rate_of(believed, factors) if believed else UNKNOWN
    believed_by_depth = tuple(min(believed_rate * factor, 1.0) for factor in factors)
    if not verified:
        return Acceptance(Steps((0,), (believed_rate,)), factors, believed_by_depth, 0.0)
    overall = rate_of(merged(by_drafts(verified)), factors)
    misses = np.array([missed(one, overall, factors) for one in verified])
    stretches = stretches_of(misses)
    rates = [rate_of(merged(by_drafts(verified[first:last])), factors) for first, last in stretches]
    starts = [verified[stretch.first].started_at for stretch in stretches]
    return Acceptance(Steps(tuple(starts), tuple(rates)), factors, believed_by_depth, sampling_error(verified))


def drafts_of(execution: GraphExecution) -> tuple[Drafts, int]:
    """An even share of the draft tokens among the lanes, and the lanes."""
    lanes, drafted = execution.batch_lanes or 1, execution.batch_tokens_drafted or 0
    return drafts_under(lanes + drafted, lanes) or Drafts(0, 0), lanes


def by_drafts(verified: Sequence[GraphExecution]) -> Mapping[tuple[Drafts, int], Sequence[float]]:
    """Draft tokens accepted in each round, by what was drafted."""
    found: dict[tuple[Drafts, int], list[float]] = defaultdict(list)
    for one in verified:
        found[drafts_of(one)].append(one.batch_tokens_accepted or 0)
    return found


def missed(execution: GraphExecution, rate: float, factors: Sequence[float]) -> float:
    """How many tokens more than expected a round accepted, scaled to a like noise for every graph."""
    drafts, lanes = drafts_of(execution)
    expected = accepted_tokens(drafts, lanes, rate, factors)
    return float(((execution.batch_tokens_accepted or 0) - expected) / max(expected, 1.0) ** 0.5)


def sampling_error(verified: Sequence[GraphExecution]) -> float:
    """Standard error of the tokens a speculative round emits, over their mean."""
    emitted = np.array([one.batch_tokens_emitted or 0 for one in verified], dtype=float)
    if len(emitted) < 2 or not emitted.mean():
        return 0.0
    return float(np.std(np.diff(emitted)) / np.sqrt(2) / np.sqrt(len(emitted)) / emitted.mean())


def believed_at_first(chosen: Sequence[GraphExecution], lanes: int) -> list[Verified]:
    """What the first decision expected of each speculative candidate, as if it had been measured.

    It is worth the trials that the scheduler remembers of a depth. What each candidate drafts is known from its
    executions in the cell; of one that was never executed nothing is taken.
    """
    first = next((one for one in chosen if can_be_taken_again(one)), None)
    drafts = {one.graph_name: drafts_of(one)[0] for one in chosen if one.batch_tokens_drafted}
    if first is None or not drafts:
        return []
    worth = SchedulerSettings().acceptance_memory_trials / lanes / len(drafts)
    return [
        Verified(drafts[name], lanes, worth, tokens - lanes)
        for name, tokens in zip(
            first.scheduler_candidate_graphs, first.scheduler_candidate_expected_tokens, strict=True
        )
        if name in drafts
    ]
