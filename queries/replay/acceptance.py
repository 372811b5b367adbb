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
from queries.replay.stretches import Steps, Stretch, stretches_of

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


def acceptance_of(verified: Sequence[GraphExecution], chosen: Sequence[GraphExecution], lanes: int) -> Acceptance:
    """Fit decoding rounds, in the order of submission.

    Args:
        verified: Speculative rounds of the cell and of what is stored before it.
        chosen: Decoding rounds of the cell; some of them can be taken again.
        lanes: Sequences in its batch.
    """
    return acceptance_in(stretches_in(verified), verified, chosen, lanes)


def stretches_in(verified: Sequence[GraphExecution]) -> list[Stretch]:
    """The stretches of these rounds in which acceptance keeps its level."""
    if not verified:
        return []
    overall = rate_of(merged(by_drafts(verified)), NO_FALL_OFF)
    return stretches_of(np.array([missed(one, overall, NO_FALL_OFF) for one in verified]))


def acceptance_in(
    stretches: Sequence[Stretch], verified: Sequence[GraphExecution], chosen: Sequence[GraphExecution], lanes: int
) -> Acceptance:
    """The same, with the stretches known; none where there was no speculative round."""
    decided = [one for one in chosen if can_be_taken_again(one)]
    believed = believed_at(decided[0], verified, lanes)
    if not stretches:
        return Acceptance(Steps((0,), (UNKNOWN,)), NO_FALL_OFF, believed_by_depth(UNKNOWN, NO_FALL_OFF))
    accepted = [merged(by_drafts(verified[first:last])) for first, last in stretches]
    # The record does not say at which depth drafts failed. What the scheduler has learnt of it shows in the end.
    factors = by_depth(fall_off_of([*accepted, believed_at(decided[-1], verified, lanes)]))
    rates = tuple(rate_of(one, factors) for one in accepted)
    starts = tuple(verified[stretch.first].started_at for stretch in stretches)
    first_rate = rate_of(believed, factors) if believed else rates[0]
    return Acceptance(Steps(starts, rates), factors, believed_by_depth(first_rate, factors))


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


def believed_at(decided: GraphExecution, verified: Sequence[GraphExecution], lanes: int) -> list[Verified]:
    """What a decision expected of each speculative candidate, as if it had been measured.

    It is worth the trials that the scheduler remembers of a depth. What a candidate drafts is known from its
    executions; of one that was never executed nothing is taken.
    """
    drafts = {one.graph_name: drafts_of(one)[0] for one in verified}
    worth = SchedulerSettings().acceptance_memory_trials / lanes / max(len(drafts), 1)
    expected = zip(decided.scheduler_candidate_graphs, decided.scheduler_candidate_expected_tokens, strict=True)
    return [Verified(drafts[name], lanes, worth, tokens - lanes) for name, tokens in expected if name in drafts]
