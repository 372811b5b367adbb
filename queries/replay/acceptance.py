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

NO_FALL_OFF: Final = by_depth(1.0)
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


def acceptance_of(known: Sequence[GraphExecution], chosen: Sequence[GraphExecution], lanes: int) -> Acceptance:
    """Fit decoding rounds, in the order of submission.

    Args:
        known: Of the cell and of what is stored before it.
        chosen: Of the cell.
        lanes: Sequences in its batch.
    """
    verified = [one for one in known if one.batch_tokens_drafted]
    believed = believed_at_first(chosen, verified, lanes)
    if not verified:
        rate = rate_of(believed, NO_FALL_OFF) if believed else UNKNOWN
        return Acceptance(Steps((0,), (rate,)), NO_FALL_OFF, believed_by_depth(rate, NO_FALL_OFF), 0.0)
    overall = rate_of(merged(by_drafts(verified)), NO_FALL_OFF)
    stretches = stretches_of(np.array([missed(one, overall, NO_FALL_OFF) for one in verified]))
    accepted = [merged(by_drafts(verified[first:last])) for first, last in stretches]
    factors = by_depth(fall_off_of(accepted))
    rates = tuple(rate_of(one, factors) for one in accepted)
    starts = tuple(verified[stretch.first].started_at for stretch in stretches)
    first_rate = rate_of(believed, factors) if believed else rates[0]
    return Acceptance(Steps(starts, rates), factors, believed_by_depth(first_rate, factors), sampling_error(verified))


def believed_by_depth(rate: float, factors: Sequence[float]) -> tuple[float, ...]:
    """Acceptance by depth, none above 1."""
    return tuple(min(rate * factor, 1.0) for factor in factors)


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


def believed_at_first(
    chosen: Sequence[GraphExecution], verified: Sequence[GraphExecution], lanes: int
) -> list[Verified]:
    """What the cell's first decision expected of each speculative candidate, as if it had been measured.

    It is worth the trials that the scheduler remembers of a depth. What a candidate drafts is known from its
    executions; of one that was never executed nothing is taken.
    """
    first = next((one for one in chosen if can_be_taken_again(one)), None)
    drafts = {one.graph_name: drafts_of(one)[0] for one in verified}
    if first is None or not drafts:
        return []
    worth = SchedulerSettings().acceptance_memory_trials / lanes / len(drafts)
    expected = zip(first.scheduler_candidate_graphs, first.scheduler_candidate_expected_tokens, strict=True)
    return [Verified(drafts[name], lanes, worth, tokens - lanes) for name, tokens in expected if name in drafts]
