"""How likely the draft at each depth is accepted, remembered over a long time."""

from collections.abc import Iterable, Sequence
from itertools import accumulate
from operator import mul

from engine_hooks.scheduler.errors import SchedulerError
from engine_hooks.scheduler.graphs import DRAFTS_PER_LANE_MAX

STEPS_PER_TOKEN = 256
"""Expected tokens come in steps of 1/256 token: acceptance is known to a percent, and what is noise is neither decided by
nor stored with every execution (docs/decisions/0024-values-stored-once.md)."""


class AcceptanceEstimator:
    """Per depth, the chance that a draft is accepted once all before it in its lane were.

    Each is an exponential mean that weighs trials, not rounds: `memory_trials` trials on
    it has come about two thirds of the way to a new rate. Long, because acceptance drifts
    slowly while a single round says little; for the same reason a few rounds are taken in
    together, which spares the engine most of the arithmetic.
    """

    def __init__(
        self,
        *,
        prior: float | Sequence[float] = 0.6,
        memory_trials: int = 1000,
        update_rounds: int = 4,
        depth_max: int = DRAFTS_PER_LANE_MAX,
    ) -> None:
        """Start from `prior`, before anything was measured.

        Args:
            prior: Acceptance of a draft at every depth, or at each from the first on.
            memory_trials: Trials of one depth that are remembered.
            update_rounds: Speculative rounds that are taken in together.
            depth_max: Drafts of a lane in one round, at most.

        Raises:
            SchedulerError: one of them is out of range.
        """
        by_depth = [prior] * depth_max if isinstance(prior, int | float) else list(prior)
        if len(by_depth) != depth_max or not all(0 <= rate <= 1 for rate in by_depth):
            raise SchedulerError(f"the prior acceptance must lie between 0 and 1 at each depth, not {prior}")
        if memory_trials < 1 or update_rounds < 1:
            raise SchedulerError(
                f"memory_trials and update_rounds must be at least 1, not {memory_trials} and {update_rounds}"
            )
        self.memory_trials = memory_trials
        self.update_rounds = update_rounds
        self.by_depth = by_depth
        self.revision = 0
        """Grows whenever an estimate has changed."""
        self._rounds: list[tuple[Sequence[int], Sequence[int]]] = []
        self._reach: list[float] = []
        """By depth: the chance that a lane's drafts are accepted as far as that."""
        self._emitted: list[float] = []
        """By drafts a lane: tokens that a lane is expected to emit."""
        self._update_sums()

    def learn(self, trials: Sequence[int], hits: Sequence[int]) -> None:
        """Learn from one round.

        Args:
            trials: For each depth from the first on: lanes that had a draft there and accepted all before it.
            hits: For each depth: those among them that accepted it.

        Raises:
            SchedulerError: the two do not go together, or are deeper than `depth_max`.
        """
        if len(trials) != len(hits) or len(trials) > len(self.by_depth):
            raise SchedulerError(f"{len(trials)} trials, {len(hits)} hits: one of each for each depth is needed")
        self._rounds.append((trials, hits))
        if len(self._rounds) == self.update_rounds:
            self._take_in()

    def _take_in(self) -> None:
        for trials, hits in self._rounds:
            for depth, tried in enumerate(trials):
                believed = self.by_depth[depth]
                self.by_depth[depth] = believed + (hits[depth] - tried * believed) / (self.memory_trials + tried)
        self._rounds.clear()
        self._update_sums()

    def expected_tokens(self, lanes: float, drafts: Iterable[tuple[int, float]]) -> tuple[float, ...]:
        """For each of `drafts`: tokens that a round of `lanes` lanes is expected to emit, their own ones included.

        In steps of 1/256 token, exact as floating-point numbers. Lanes are faster as such, too.
        """
        emitted, reach, steps = self._emitted, self._reach, STEPS_PER_TOKEN
        return tuple(
            [
                round((lanes * emitted[full] + extra_lanes * reach[full + 1]) * steps) / steps
                for full, extra_lanes in drafts
            ]
        )

    def _update_sums(self) -> None:
        self._reach = list(accumulate(self.by_depth, mul, initial=1.0))
        self._emitted = list(accumulate(self._reach))
        self._reach.append(0.0)  # no draft lies deeper
        self.revision += 1


def depth_counts(drafted: Sequence[int], accepted: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Trials and hits of each depth, as `learn` takes them, from each lane's drafted and accepted tokens."""
    deepest = max(drafted, default=0)
    lanes = list(zip(drafted, accepted, strict=True))
    trials = tuple(sum(d >= depth and a >= depth - 1 for d, a in lanes) for depth in range(1, deepest + 1))
    hits = tuple(sum(d >= depth and a >= depth for d, a in lanes) for depth in range(1, deepest + 1))
    return trials, hits
