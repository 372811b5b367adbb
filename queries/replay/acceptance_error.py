"""How well a cell's rounds tell what drafts are worth: the fit of acceptance, again on resampled rounds."""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from engine_hooks.scheduler.graphs import Graph, drafts_under
from queries.record import CellExecutions
from queries.replay.acceptance import Acceptance, acceptance_in, stretches_in
from queries.replay.drafts import accepted_tokens
from queries.replay.fitting import Fit
from queries.replay.planning import CHOSEN_KINDS

RESAMPLES: Final = 20
INSTANTS: Final = 8
"""Instants of the cell at which acceptance is looked at."""


def acceptance_error(cell: CellExecutions, fit: Fit, rounds: Mapping[str, int]) -> float:
    """Standard error of the tokens that these rounds emit, over their mean, by the bootstrap.

    Args:
        cell: The cell, whose speculative rounds are drawn again with replacement.
        fit: Its fit.
        rounds: How many of each graph; those of a simulated run.
    """
    verified = [one for one in (*cell.before, *fit.rounds) if one.batch_tokens_drafted]
    chosen = [one for one in fit.rounds if one.graph_kind in CHOSEN_KINDS]
    if not verified:
        return 0.0
    lanes = fit.scenario.engine.lanes
    generator = np.random.default_rng(0)
    emitted = []
    stretches = stretches_in(verified)
    for _ in range(RESAMPLES):
        drawn = np.concatenate(
            [generator.integers(*stretch, size=stretch.last - stretch.first) for stretch in stretches]
        )
        acceptance = acceptance_in(stretches, [verified[number] for number in drawn.tolist()], chosen, lanes)
        emitted.append(tokens_emitted(acceptance, fit, rounds))
    return float(np.std(emitted, ddof=1) / np.mean(emitted))


def tokens_emitted(acceptance: Acceptance, fit: Fit, rounds: Mapping[str, int]) -> float:
    """Tokens that these rounds are expected to emit under this acceptance."""
    instants = np.linspace(fit.began_at, fit.began_at + fit.last_submitted_ns, INSTANTS).astype(int).tolist()
    rate = float(np.mean([acceptance.rate.at(at) for at in instants]))
    lanes = fit.scenario.engine.lanes
    graphs: Sequence[Graph] = list(fit.scenario.engine.graph_gpu_ns)
    return sum(
        rounds.get(graph.name, 0) * (lanes + accepted_by(graph, lanes, rate, acceptance.factors)) for graph in graphs
    )


def accepted_by(graph: Graph, lanes: int, rate: float, factors: Sequence[float]) -> float:
    """Draft tokens that a round of this graph is expected to have accepted."""
    drafts = drafts_under(graph.verification_budget, lanes) if graph.verification_budget else None
    return accepted_tokens(drafts, lanes, rate, factors) if drafts else 0.0
