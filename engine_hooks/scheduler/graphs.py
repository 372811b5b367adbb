"""The graphs a scheduler chooses from, and how a verification budget is shared among lanes."""

from typing import NamedTuple

from engine_hooks.contract.names import GraphKind

DRAFTS_PER_LANE_MAX = 7
"""Draft tokens verified for one lane in one round, at most."""


class Graph(NamedTuple):
    """A graph that decodes: plain, or speculative under a verification budget."""

    name: str
    kind: GraphKind
    verification_budget: int | None = None
    """Positions verified at most, each lane's own token included; `None` for plain decode."""


class Drafts(NamedTuple):
    """Draft tokens of one round: every lane gets `full`, the first `extra_lanes` one more."""

    full: int
    extra_lanes: int

    def total(self, lanes: int) -> int:
        """Draft tokens over all lanes."""
        return self.full * lanes + self.extra_lanes


NO_DRAFTS = Drafts(0, 0)


def drafts_under(budget: int, lanes: int, drafts_per_lane_max: int = DRAFTS_PER_LANE_MAX) -> Drafts | None:
    """An even share of `budget` positions among `lanes`, each lane's own token included.

    `None`: not even one draft fits, so that the graph is of no use to this batch.
    """
    spare = budget - lanes
    if lanes < 1 or spare < 1 or drafts_per_lane_max < 1:
        return None
    full, extra_lanes = divmod(spare, lanes)
    return Drafts(drafts_per_lane_max, 0) if full >= drafts_per_lane_max else Drafts(full, extra_lanes)
