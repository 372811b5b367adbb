"""Every ordinary decoding decision of a cell, judged at true costs and true acceptance."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from engine_hooks.contract.execution import GraphExecution
from queries.findings.acceptance import Stretch, true_tokens
from queries.findings.batch import BatchSizes
from queries.findings.costs import Costs
from queries.findings.timeline import Bools, Floats, Ints, Timeline

TRULY_BEST: Final = 0.99
"""A choice counts as truly best from this share of the best rate on."""
WORSE_BY: Final = 0.01
"""A choice is worse if another graph's true rate is above its own by more than this."""
OVERHEAD_MAX: Final = 0.08
"""What a model usually charges on top of true costs, at most, as a share of them."""


@dataclass(frozen=True)
class Decisions:
    """Matrices are by decision and graph; NaN: no candidate, or never measured."""

    timeline: Timeline
    row: Ints
    """Its execution in the timeline."""
    chosen: Ints
    estimates: Floats
    believed_tokens: Floats
    tokens: Floats
    """At true acceptance."""
    costs: Floats
    """True costs, in ns."""
    plain: Ints
    """Graphs that decode plainly."""
    on_time: Bools
    """The host was not systematically late with the chosen graph."""
    stumble: Ints
    """By execution of the timeline, as in `Costs`."""
    trials: float
    """First drafts of a lane that the acceptance rests on."""
    untold: Bools
    """By decision and graph: better or not, by what it costs at this batch size, and that was never measured."""

    @property
    def believed_rates(self) -> Floats:
        """Tokens per ns, as the scheduler believed."""
        return self.believed_tokens / self.estimates

    @property
    def rates(self) -> Floats:
        """Tokens per ns at true costs and acceptance."""
        return self.tokens / self.costs

    def of_chosen(self, matrix: Floats) -> Floats:
        """The chosen graph's entry of each decision."""
        return np.asarray(matrix[np.arange(len(self.chosen)), self.chosen])

    @property
    def in_plain(self) -> Bools:
        """Plain decode was chosen."""
        return np.isin(self.chosen, self.plain)

    @property
    def weights_ns(self) -> Floats:
        """Device time of each decision, the idle time of single delays not counted."""
        return self.of_chosen(self.costs)

    @property
    def best_rates(self) -> Floats:
        """The best true rate of each decision."""
        return np.asarray(np.nanmax(self.rates, axis=1))

    @property
    def truly_best(self) -> Bools:
        """The choice was truly best, within 1 %."""
        return self.of_chosen(self.rates) >= TRULY_BEST * self.best_rates

    @property
    def tokens_lost(self) -> Floats:
        """By decision: expected tokens short of what the best choice would have given in the same time."""
        return (self.best_rates - self.of_chosen(self.rates)) * self.weights_ns

    @property
    def loss_percent(self) -> float:
        """Of what the best choices would have given; time weighs, not decisions."""
        best = float(self.best_rates @ self.weights_ns)
        return 100 * float(self.tokens_lost.sum()) / best if best else 0.0


def decisions_of(timeline: Timeline, costs: Costs, stretches: list[Stretch]) -> Decisions | None:
    """The judged decisions; `None` if none was recorded with what it was chosen from."""
    rows = [
        row
        for row in np.flatnonzero(timeline.in_cell & timeline.ordinary & timeline.decoding).tolist()
        if _recorded(timeline.executions[row])
    ]
    if not rows:
        return None
    chosen_from = [timeline.executions[row] for row in rows]
    number = {name: n for n, name in enumerate(timeline.names)}
    estimates = np.full((len(rows), len(number)), np.nan)
    believed = estimates.copy()
    for n, e in enumerate(chosen_from):
        columns = [number[name] for name in e.scheduler_candidate_graphs]
        estimates[n, columns] = e.scheduler_candidate_estimates_ns
        believed[n, columns] = e.scheduler_candidate_expected_tokens
    row = np.array(rows, dtype=np.int64)
    lanes = np.array([e.batch_lanes or 1 for e in chosen_from], dtype=np.float64)
    total = costs.total[timeline.bins[row]] + _for_the_batch(timeline, costs, row)
    chosen = timeline.graph[row]
    on_time = costs.slow[row] == 0
    charged = estimates - usual_overhead(estimates, chosen, total, on_time)
    total = np.where(np.isnan(total), _from_charges(charged, costs.batch, costs.batch.lanes[row]), total)
    total[np.isnan(estimates)] = np.nan
    started = timeline.started[row]
    tokens = true_tokens(timeline, stretches, started, lanes, believed)
    total, untold = _as_far_as_measured(costs.batch, row, total, tokens, chosen)
    plain = _plain(timeline, believed, lanes)
    trials = float(lanes.mean()) * max((stretch.rounds for stretch in stretches), default=0)
    return Decisions(
        timeline, row, chosen, estimates, believed, tokens, total, plain, on_time, costs.stumble, trials, untold
    )


def _for_the_batch(timeline: Timeline, costs: Costs, row: Ints) -> Floats:
    """What the batch of each decision adds to the costs at the batch that its bin mostly had."""
    if not costs.batch.matters:
        return np.zeros((len(row), costs.gpu.shape[1]))
    bins = timeline.bins[row]
    usual = costs.batch.factors(costs.batch.in_bins(len(costs.gpu)))[bins]
    return np.asarray(costs.gpu[bins] * (costs.batch.factors(costs.batch.lanes[row]) / usual - 1))


def _as_far_as_measured(
    batch: BatchSizes, row: Ints, costs: Floats, tokens: Floats, chosen: Ints
) -> tuple[Floats, Bools]:
    """Costs that hold at each decision's batch size, NaN where they do not; and where that leaves open which is better.

    A larger batch takes no less time and, as a rule, no more than in proportion: where a graph is better or worse than
    the chosen one either way, it is known to be.
    """
    lanes, untold = batch.lanes[row], np.zeros(costs.shape, dtype=np.bool_)
    if batch.compared(lanes).all():
        return costs, untold
    costs, own = costs.copy(), tokens[np.arange(len(row)), chosen] / costs[np.arange(len(row)), chosen]
    elsewhere = ~batch.compared(lanes) & np.isfinite(costs)
    for graph in np.flatnonzero(elsewhere.any(axis=0)).tolist():
        among, sizes = np.flatnonzero(elsewhere[:, graph]), batch.lanes_of(graph)
        nearest = sizes[np.abs(np.log(sizes / lanes[among][:, None])).argmin(axis=1)]
        times, cost = lanes[among] / nearest, costs[among, graph]
        at_most, at_least = cost * np.maximum(times, 1), cost * np.minimum(times, 1)
        surely, perhaps = (tokens[among, graph] / one > (1 + WORSE_BY) * own[among] for one in (at_most, at_least))
        untold[among, graph] = surely != perhaps
        costs[among, graph] = np.where(surely == perhaps, at_most, np.nan)
    return costs, untold


def _recorded(execution: GraphExecution) -> bool:
    """Whether everything it was chosen from is there."""
    graphs = execution.scheduler_candidate_graphs
    return (
        execution.graph_name in graphs
        and len(graphs) == len(execution.scheduler_candidate_estimates_ns)
        and len(graphs) == len(execution.scheduler_candidate_expected_tokens)
        and min(execution.scheduler_candidate_estimates_ns) > 0
    )


def usual_overhead(estimates: Floats, chosen: Ints, costs: Floats, on_time: Bools) -> float:
    """What the cost model usually charges on top of true costs, in ns.

    As seen at graphs in use, which are up to date, and where the host is not slow, if there are such.
    """
    rows = np.flatnonzero(on_time) if on_time.any() else np.arange(len(chosen))
    picked = rows, chosen[rows]
    over = estimates[picked] - costs[picked]
    fair = over[np.abs(over) <= OVERHEAD_MAX * costs[picked]]
    return max(float(np.median(fair)), 0.0) if len(fair) else 0.0


def _from_charges(charged: Floats, batch: BatchSizes, lanes: Floats) -> Floats:
    """The cost of a graph that was never executed: the least that it was charged, at batch sizes that compare.

    Args:
        charged: Its estimates, less what is usually added.
        batch: What the batch does.
        lanes: Of each decision.
    """
    factors, group = batch.factors(lanes), batch.group_of(lanes)
    charged = np.where(np.isnan(charged), np.inf, charged / factors)
    result = np.full(charged.shape, np.nan)
    for one in np.unique(group):
        least = charged[group == one].min(axis=0)
        result[group == one] = np.where(np.isfinite(least), np.maximum(least, 1), np.nan)
    return np.asarray(result * factors)


def _plain(timeline: Timeline, believed: Floats, lanes: Floats) -> Ints:
    """Graphs that decode plainly: as executed, else those that promise no more than a token a lane."""
    plain = set(timeline.graph[timeline.decoding & ~timeline.speculative].tolist())
    known = set(timeline.graph.tolist())
    for graph in range(len(timeline.names)):
        promised = believed[:, graph] / lanes
        if graph not in known and np.isfinite(promised).any() and np.nanmax(promised) <= 1:
            plain.add(graph)
    return np.array(sorted(plain), dtype=np.int64)
