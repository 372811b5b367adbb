"""Speculative rounds charged without their draft executions, and chosen for it."""

import numpy as np

from queries.findings.decisions import Decisions
from queries.findings.findings import Undercharge
from queries.findings.inflation import FAULT_S


def undercharge_of(decisions: Decisions) -> Undercharge | None:
    """What was lost by rounds whose charge has no room for their drafts; `None` where that took less than a second."""
    drafts_ns = decisions.timeline.drafts[decisions.row]
    if not drafts_ns.any():
        return None
    charged, cost = decisions.of_chosen(decisions.estimates), decisions.of_chosen(decisions.costs)
    worse = (drafts_ns > 0) & (charged < cost - drafts_ns / 2) & ~decisions.truly_best
    weights = decisions.weights_ns
    seconds = float(weights[worse].sum()) / 1e9
    if seconds < FAULT_S:
        return None
    lost = decisions.tokens_lost
    graph = max(
        np.unique(decisions.chosen[worse]).tolist(), key=lambda one: lost[worse & (decisions.chosen == one)].sum()
    )
    of_graph = worse & (decisions.chosen == graph)
    rates = decisions.rates[of_graph]
    best = np.where(np.isnan(rates), -np.inf, rates).argmax(axis=1)
    return Undercharge(
        graph=decisions.timeline.names[graph],
        better=decisions.timeline.names[int(np.bincount(best).argmax())],
        charged_ns=int(np.median(charged[of_graph])),
        cost_ns=int(np.median(cost[of_graph])),
        drafts_ns=int(np.median(drafts_ns[of_graph])),
        decisions=int(worse.sum()),
        seconds=seconds,
        loss_percent=100 * float(lost[worse].sum()) / float(decisions.best_rates @ weights),
        tokens_lost=float(lost[worse].sum()),
    )
