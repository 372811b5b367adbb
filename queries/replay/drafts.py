"""How far drafts are accepted, fitted to what a cell accepted: a rate at the first depth, and how it falls off."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from engine_hooks.scheduler.graphs import DRAFTS_PER_LANE_MAX, Drafts

FALL_OFF_SD: Final = 0.1
"""How far the fall-off from depth to depth is believed to lie from none, before anything was measured."""
RATE_LIMITS: Final = (1e-6, 1 - 1e-6)
HALVINGS: Final = 24


class Verified(NamedTuple):
    """What speculative rounds with the same drafts came to."""

    drafts: Drafts
    lanes: int
    rounds: float
    """How many they were; of what is believed beforehand, how many it is worth."""
    accepted: float
    """Draft tokens accepted a round, over all lanes."""


def by_depth(fall_off: float) -> tuple[float, ...]:
    """Factor on the rate at each depth."""
    return tuple(fall_off**depth for depth in range(DRAFTS_PER_LANE_MAX))


def accepted_tokens(drafts: Drafts, lanes: int, rate: float, factors: Sequence[float]) -> float:
    """Draft tokens that a round is expected to have accepted."""
    reached = np.cumprod(np.clip(rate * np.asarray(factors), *RATE_LIMITS))
    extra = drafts.extra_lanes * reached[drafts.full] if drafts.extra_lanes else 0.0
    return float(lanes * reached[: drafts.full].sum() + extra)


def rate_of(verified: Sequence[Verified], factors: Sequence[float]) -> float:
    """The rate at the first depth with which these rounds accept as many tokens in all as they did."""
    observed = sum(one.rounds * one.accepted for one in verified)
    low, high = RATE_LIMITS
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        expected = sum(one.rounds * accepted_tokens(one.drafts, one.lanes, middle, factors) for one in verified)
        low, high = (middle, high) if expected < observed else (low, middle)
    return (low + high) / 2


def fall_off_of(stretches: Sequence[Sequence[Verified]]) -> float:
    """How acceptance changes from one depth to the next, as far as graphs of different depth show it.

    In each of the stretches acceptance has a level of its own.
    """
    from scipy import optimize  # noqa: PLC0415 (takes a second)

    def misfit(fall_off: float) -> float:
        factors = by_depth(fall_off)
        missed = 0.0
        for verified in stretches:
            rate = rate_of(verified, factors)
            missed += sum(squared_misfit(one, rate, factors) for one in verified)
        return missed + ((fall_off - 1) / FALL_OFF_SD) ** 2

    if all(len(verified) < 2 for verified in stretches):
        return 1.0
    return float(optimize.minimize_scalar(misfit, bounds=(0.5, 1.2), method="bounded").x)


def squared_misfit(one: Verified, rate: float, factors: Sequence[float]) -> float:
    """How far the rounds lie off, in standard errors, squared. Each lane's run is about as spread as long."""
    expected = accepted_tokens(one.drafts, one.lanes, rate, factors)
    return one.rounds * (one.accepted - expected) ** 2 / max(expected, 1.0)


def merged(rounds: Mapping[tuple[Drafts, int], Sequence[float]]) -> list[Verified]:
    """Rounds by drafts and lanes, with the tokens each accepted."""
    return [
        Verified(drafts, lanes, len(accepted), float(np.mean(accepted)))
        for (drafts, lanes), accepted in rounds.items()
        if len(accepted)
    ]
