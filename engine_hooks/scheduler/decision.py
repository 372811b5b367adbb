"""What the scheduler is asked, and what it answers."""

from collections.abc import Sequence
from operator import truediv
from typing import Any, NamedTuple

from engine_hooks.contract.names import Purpose
from engine_hooks.cost_model.model import Estimate
from engine_hooks.scheduler.graphs import DRAFTS_PER_LANE_MAX, Drafts, Graph


class BatchState(NamedTuple):
    """The engine as it plans its next round."""

    now_ns: int
    """The engine's monotonic clock."""
    lanes: int
    """Sequences in the batch."""
    drafts_per_lane_max: int = DRAFTS_PER_LANE_MAX
    """Draft tokens at hand for each lane, at most."""


class Decision(NamedTuple):
    """The graph to run, and everything it was chosen from. The three candidate arrays have one length."""

    graph: Graph
    purpose: Purpose
    drafts: Drafts
    cost_model: str
    estimate: Estimate | None
    """What the chosen graph was charged; `None` while the engine calibrates."""
    expected_tokens: float | None
    candidates: tuple[str, ...] = ()
    """Names of all graphs it was chosen from; empty while the engine calibrates."""
    candidate_estimates_ns: tuple[int, ...] = ()
    candidate_expected_tokens: tuple[float, ...] = ()

    @property
    def calibrates(self) -> bool:
        """Whether this execution only measures a graph at start-up: run it on a drained queue and emit no tokens."""
        return self.estimate is None

    @property
    def margin(self) -> float | None:
        """Tokens per time of the chosen graph over those of the best other, minus 1; `None` without another.

        Negative for a refresh or a probe of a graph that does not look best.
        """
        rates = self._rates()
        chosen = self.candidates.index(self.graph.name) if rates else 0
        others = rates[:chosen] + rates[chosen + 1 :]
        return rates[chosen] / max(others) - 1 if others else None

    @property
    def candidate_margins(self) -> tuple[float, ...]:
        """Each candidate's tokens per time over those of the chosen graph, minus 1."""
        rates = self._rates()
        return tuple(rate / rates[self.candidates.index(self.graph.name)] - 1 for rate in rates)

    def span_fields(self) -> dict[str, Any]:
        """The `scheduler_*` fields of the `GraphExecution` that this decision leads to."""
        estimate = self.estimate
        return {
            "scheduler_cost_model": self.cost_model,
            "scheduler_estimate_ns": estimate and estimate.total_ns,
            "scheduler_estimate_gpu_ns": estimate and estimate.gpu_ns,
            "scheduler_estimate_handoff_ns": estimate and estimate.handoff_ns,
            "scheduler_expected_tokens": self.expected_tokens,
            "scheduler_candidate_graphs": self.candidates,
            "scheduler_candidate_estimates_ns": self.candidate_estimates_ns,
            "scheduler_candidate_expected_tokens": self.candidate_expected_tokens,
        }

    def _rates(self) -> list[float]:
        return rates_of(self.candidate_expected_tokens, self.candidate_estimates_ns)


def rates_of(expected_tokens: Sequence[float], estimates_ns: Sequence[int]) -> list[float]:
    """Expected tokens per estimated nanosecond of each candidate. An estimate of 0 counts as 1 ns."""
    return [tokens / (estimate_ns or 1) for tokens, estimate_ns in zip(expected_tokens, estimates_ns, strict=True)]


def best_candidate(expected_tokens: Sequence[float], estimates_ns: Sequence[int]) -> int:
    """Index of the candidate with the most expected tokens per estimated time; the first of equals.

    The rule of every ordinary decision: the live scheduler and the replay call it.
    """
    try:
        rates = list(map(truediv, expected_tokens, estimates_ns))
    except ZeroDivisionError:
        rates = rates_of(expected_tokens, estimates_ns)
    return rates.index(max(rates))
