"""The scheduler: ordinary choice, start-up calibration, refreshes and acceptance probes."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import cast

from engine_hooks.contract.names import GraphKind, Purpose
from engine_hooks.cost_model.model import CostModel, Estimate, Measurement
from engine_hooks.scheduler.acceptance import AcceptanceEstimator
from engine_hooks.scheduler.decision import BatchState, Decision, best_candidate
from engine_hooks.scheduler.errors import SchedulerError
from engine_hooks.scheduler.graphs import NO_DRAFTS, Drafts, Graph, drafts_under
from engine_hooks.scheduler.refreshes import Refreshes

TOTAL_NS = itemgetter(Estimate._fields.index("total_ns"))
BATCH_SHAPES_MAX = 1024
"""Batch shapes whose candidates are kept prepared."""


@dataclass(frozen=True)
class SchedulerSettings:
    """Settings of the scheduler; the defaults are the published engine's."""

    calibration_executions: int = 3
    """Executions of each graph at start-up, before the first ordinary round.

    0: none. Only graphs that the cost model has measured, or was restored with, are chosen.
    """
    acceptance_prior: float | tuple[float, ...] = 0.6
    """Acceptance of a draft believed before any was verified: at every depth, or at each from the first on."""
    acceptance_memory_trials: int = 1000
    """Trials of one depth that the acceptance estimate remembers."""
    acceptance_update_rounds: int = 4
    """Speculative rounds whose acceptance is taken in together. 1: after every round."""
    refresh_share: float = 0.01
    """Share of the time that may go into measuring expired graphs again. 0: expired graphs stay unmeasured."""
    refresh_credit_max_ns: int = 60_000_000
    """Credit for refreshes that can be saved up. A graph dearer than that is refreshed for a full credit."""
    refresh_retry_ns: int = 1_000_000_000
    """A graph sent for a refresh is not sent again within this time; its completion may be on its way."""
    probe_interval_ns: int = 0
    """Longest time without a speculative round before one is run to learn acceptance. 0: never.

    Off by default: a queued probe renews an estimate's 30 s without correcting its handoff,
    which would keep a graph that `exposed_mean` has inflated from ever expiring.
    """

    def __post_init__(self) -> None:
        for name in ("calibration_executions", "refresh_credit_max_ns", "refresh_retry_ns", "probe_interval_ns"):
            if getattr(self, name) < 0:
                raise SchedulerError(f"{name} must not be negative, as {getattr(self, name)} is")
        if not 0 <= self.refresh_share <= 1:
            raise SchedulerError(f"refresh_share must lie between 0 and 1, not {self.refresh_share}")


@dataclass
class _Candidates:
    """The graphs that suit one batch shape, and what is expected of them."""

    graphs: tuple[Graph, ...]
    drafts: tuple[Drafts, ...]
    names: tuple[str, ...] = field(init=False)
    expected_tokens: tuple[float, ...] = ()
    acceptance_revision: int = -1

    def __post_init__(self) -> None:
        self.names = tuple(graph.name for graph in self.graphs)
        self._shares = tuple((full, float(extra_lanes)) for full, extra_lanes in self.drafts)

    def expect(self, lanes: int, acceptance: AcceptanceEstimator) -> None:
        """Work out what is expected of each, now that acceptance has changed."""
        self.expected_tokens = acceptance.expected_tokens(float(lanes), self._shares)
        self.acceptance_revision = acceptance.revision

    def measured(self, estimates: Sequence[Estimate | None]) -> "_Candidates":
        """Those that have an estimate."""
        kept = [number for number, estimate in enumerate(estimates) if estimate is not None]
        return _Candidates(tuple(self.graphs[n] for n in kept), tuple(self.drafts[n] for n in kept))


class Scheduler:
    """Chooses the next graph by expected tokens / estimated cost, and learns from what became of it.

    One caller at a time. Call `choose` when a decoding round is planned and `record` once
    for every finished execution, of any graph, in the order of execution; `choose` looks at
    nothing else, so equal calls give equal decisions.
    """

    def __init__(
        self, graphs: Sequence[Graph], cost_model: CostModel, settings: SchedulerSettings | None = None
    ) -> None:
        """Choose among `graphs`, in whose order ties are broken.

        Raises:
            SchedulerError: no graphs, two of one name, or a speculative one without a budget.
        """
        self.graphs = _validated(graphs)
        self.cost_model = cost_model
        self.settings = settings or SchedulerSettings()
        self.acceptance = AcceptanceEstimator(
            prior=self.settings.acceptance_prior,
            memory_trials=self.settings.acceptance_memory_trials,
            update_rounds=self.settings.acceptance_update_rounds,
        )
        self._refreshes = Refreshes(
            share=self.settings.refresh_share,
            credit_max_ns=self.settings.refresh_credit_max_ns,
            retry_ns=self.settings.refresh_retry_ns,
        )
        self._uncalibrated = [graph for graph in self.graphs for _ in range(self.settings.calibration_executions)]
        self._uncalibrated.reverse()
        self._candidates: dict[tuple[int, int], _Candidates] = {}
        self._speculated_at_ns: int | None = None

    @property
    def calibrating(self) -> bool:
        """Whether start-up calibrations are still to be submitted."""
        return bool(self._uncalibrated)

    def choose(self, state: BatchState) -> Decision:
        """The next graph for this batch.

        Raises:
            SchedulerError: no graph suits the batch.
        """
        if self._uncalibrated:
            return self._calibration(self._uncalibrated.pop())
        now_ns, lanes, drafts_max = state
        candidates = self._candidates.get((lanes, drafts_max)) or self._prepare(lanes, drafts_max)
        estimate_of = self.cost_model.estimate
        estimates = [estimate_of(name, now_ns) for name in candidates.names]
        if not all(estimates):
            if not any(estimates):
                return self._calibration(candidates.graphs[0])
            candidates = candidates.measured(estimates)
            estimates = [estimate for estimate in estimates if estimate]
        return self._choose_among(candidates, cast("list[Estimate]", estimates), now_ns, lanes)

    def record(self, measurement: Measurement, trials: Sequence[int] = (), hits: Sequence[int] = ()) -> None:
        """Learn from a finished execution; `trials` and `hits` of each depth if it verified drafts."""
        self.cost_model.record(measurement)
        if trials:
            self.acceptance.learn(trials, hits)

    def _choose_among(self, candidates: _Candidates, estimates: list[Estimate], now_ns: int, lanes: int) -> Decision:
        if candidates.acceptance_revision != self.acceptance.revision:
            candidates.expect(lanes, self.acceptance)
        expected = candidates.expected_tokens
        totals_ns = tuple(map(TOTAL_NS, estimates))
        chosen = best = best_candidate(expected, totals_ns)
        purpose = Purpose.ORDINARY
        if now_ns >= self._refreshes.look_at_ns:
            chosen = self._refreshes.pick(candidates.names, estimates, best, now_ns)
            purpose = Purpose.ORDINARY if chosen == best else Purpose.REFRESH
        if self.settings.probe_interval_ns and chosen == best:
            chosen = self._probe(candidates, best, now_ns)
            purpose = Purpose.ORDINARY if chosen == best else Purpose.ACCEPTANCE_PROBE
        return Decision(
            candidates.graphs[chosen],
            purpose,
            candidates.drafts[chosen],
            self.cost_model.name,
            estimates[chosen],
            expected[chosen],
            candidates.names,
            totals_ns,
            expected,
        )

    def _probe(self, candidates: _Candidates, best: int, now_ns: int) -> int:
        """The speculative candidate with the largest budget, if no speculative round was run for long; else `best`."""
        speculative = [n for n, graph in enumerate(candidates.graphs) if graph.verification_budget]
        if best in speculative or self._speculated_at_ns is None:
            self._speculated_at_ns = now_ns
            return best
        if not speculative or now_ns - self._speculated_at_ns < self.settings.probe_interval_ns:
            return best
        self._speculated_at_ns = now_ns
        return max(speculative, key=lambda number: candidates.graphs[number].verification_budget or 0)

    def _calibration(self, graph: Graph) -> Decision:
        return Decision(graph, Purpose.REFRESH, NO_DRAFTS, self.cost_model.name, None, None)

    def _prepare(self, lanes: int, drafts_max: int) -> _Candidates:
        suited = []
        for graph in self.graphs:
            budget = graph.verification_budget
            drafts = NO_DRAFTS if budget is None else drafts_under(budget, lanes, drafts_max)
            if drafts is not None:
                suited.append((graph, drafts))
        if not suited:
            raise SchedulerError(f"no graph suits a batch of {lanes} lanes; add plain decode or a larger budget")
        candidates = _Candidates(tuple(map(itemgetter(0), suited)), tuple(map(itemgetter(1), suited)))
        if len(self._candidates) >= BATCH_SHAPES_MAX:
            self._candidates.clear()
        self._candidates[lanes, drafts_max] = candidates
        return candidates


def _validated(graphs: Sequence[Graph]) -> tuple[Graph, ...]:
    names = [graph.name for graph in graphs]
    if not names or len(set(names)) < len(names):
        raise SchedulerError(f"the scheduler needs graphs, each of its own name; given were {names}")
    for graph in graphs:
        if graph.kind == GraphKind.SPECULATIVE and not graph.verification_budget:
            raise SchedulerError(f"speculative graph {graph.name} needs a verification budget of at least 1")
    return tuple(graphs)
