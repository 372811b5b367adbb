"""How likely the draft at each depth is accepted, remembered over a long time."""

from collections.abc import Sequence
from itertools import accumulate
from operator import mul

from engine_hooks.scheduler.errors import SchedulerError
from engine_hooks.scheduler.graphs import DRAFTS_PER_LANE_MAX, Drafts


class AcceptanceEstimator:
    """Per depth, the chance that a draft is accepted once all before it in its lane were.

    Each is an exponential mean that weighs trials, not rounds: `memory_trials` trials on
    it has come about two thirds of the way to a new rate. Long, because acceptance drifts
    slowly while a single round says little.
    """

    def __init__(self, *, prior: float = 0.6, memory_trials: int = 1000, depth_max: int = DRAFTS_PER_LANE_MAX) -> None:
        """`prior`: believed before anything was measured. `memory_trials`: trials of a depth that it remembers."""
        if not 0 <= prior <= 1:
            raise SchedulerError(f"the prior acceptance must lie between 0 and 1, not {prior}")
        if memory_trials < 1:
            raise SchedulerError(f"memory_trials must be at least 1, not {memory_trials}")
        self.memory_trials = memory_trials
        self.by_depth = [prior] * depth_max
        self.revision = 0
        """Grows whenever an estimate has changed."""
        self._reach: list[float] = []
        self._emitted: list[float] = []
        self._update_sums()

    def learn(self, trials: Sequence[int], hits: Sequence[int]) -> None:
        """Learn from one round.

        Args:
            trials: For each depth from the first on: lanes that had a draft there and accepted all before it.
            hits: For each depth: those among them that accepted it.
        """
        by_depth, memory = self.by_depth, self.memory_trials
        for depth, (tried, hit) in enumerate(zip(trials, hits, strict=True)):
            if tried:
                believed = by_depth[depth]
                by_depth[depth] = believed + (hit - tried * believed) / (memory + tried)
        self._update_sums()

    def expected_tokens(self, lanes: int, drafts: Drafts) -> float:
        """Tokens that a round of `lanes` lanes with these drafts is expected to emit, their own ones included."""
        full, extra_lanes = drafts
        emitted = lanes * self._emitted[full]
        return emitted + extra_lanes * self._reach[full + 1] if extra_lanes else emitted

    def _update_sums(self) -> None:
        self._reach = list(accumulate(self.by_depth, mul, initial=1.0))
        self._emitted = list(accumulate(self._reach))
        self.revision += 1


def depth_counts(drafted: Sequence[int], accepted: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Trials and hits of each depth, as `learn` takes them, from each lane's drafted and accepted tokens."""
    deepest = max(drafted, default=0)
    lanes = list(zip(drafted, accepted, strict=True))
    trials = tuple(sum(d >= depth and a >= depth - 1 for d, a in lanes) for depth in range(1, deepest + 1))
    hits = tuple(sum(d >= depth and a >= depth for d, a in lanes) for depth in range(1, deepest + 1))
    return trials, hits
