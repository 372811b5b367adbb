"""Graphs charged more than they cost where no execution in the record accounts for it."""

import numpy as np

from queries.findings.decisions import Decisions
from queries.findings.findings import Overcharge
from queries.findings.inflation import FAULT_S, turned_decisions
from queries.findings.moves import Estimates


def overcharge_of(decisions: Decisions, estimates: Estimates) -> Overcharge | None:
    """What charges above true costs turned for the worse; `None` where that took less than a second.

    For cells in which no cause was found: there nothing recorded lifted the estimates.
    """
    turned, better = turned_decisions(decisions, estimates)
    weights = decisions.weights_ns
    seconds = float(weights[turned].sum()) / 1e9
    if seconds < FAULT_S:
        return None
    gains = (decisions.rates[np.arange(len(turned)), better] - decisions.of_chosen(decisions.rates)) * weights
    graph = max(np.unique(better[turned]).tolist(), key=lambda one: float(gains[turned & (better == one)].sum()))
    of_graph = np.flatnonzero(turned & (better == graph))
    worst = of_graph[np.argmax(decisions.estimates[of_graph, graph])]
    fair = np.flatnonzero(~estimates.inflated[: of_graph[0], graph])
    timeline = decisions.timeline
    return Overcharge(
        graph=timeline.names[graph],
        charged_ns=int(decisions.estimates[worst, graph]),
        cost_ns=int(decisions.costs[worst, graph]),
        since_ns=int(timeline.started[decisions.row[fair[-1] + 1]]) if len(fair) else None,
        decisions_turned=int(turned.sum()),
        seconds_turned=seconds,
        loss_percent=100 * float(gains[turned].sum()) / float(decisions.best_rates @ weights),
        tokens_lost=float(gains[turned].sum()),
    )
