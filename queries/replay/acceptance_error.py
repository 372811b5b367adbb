"""How well a cell's rounds tell what drafts are worth: the fit of acceptance, again on resampled rounds."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from engine_hooks.contract.execution import GraphExecution
from engine_hooks.contract.names import DECODING_KINDS
from engine_hooks.scheduler.graphs import Drafts
from queries.record import CellExecutions
from queries.replay.acceptance import Acceptance, acceptance_in, drafts_of, stretches_in
from queries.replay.drafts import accepted_tokens
from queries.replay.fitting import Fit

RESAMPLES: Final = 20
INSTANTS: Final = 16
"""Instants of the cell at which acceptance is looked at."""


def acceptance_error(cell: CellExecutions, fit: Fit, executions: Sequence[GraphExecution]) -> float:
    """Standard error of the tokens that a run emits, over their mean, by the bootstrap.

    Args:
        cell: The cell, whose speculative rounds are drawn again with replacement.
        fit: Its fit.
        executions: A simulated run.
    """
    verified = [one for one in (*cell.before, *fit.rounds) if one.batch_tokens_drafted]
    chosen = [one for one in fit.rounds if one.graph_kind in DECODING_KINDS]
    if not verified:
        return 0.0
    lanes = fit.scenario.engine.lanes
    rounds = rounds_by_drafts(executions, fit)
    generator = np.random.default_rng(0)
    stretches = stretches_in(verified)
    emitted = []
    for _ in range(RESAMPLES):
        drawn = np.concatenate([generator.integers(*one, size=one.last - one.first) for one in stretches])
        acceptance = acceptance_in(stretches, [verified[number] for number in drawn.tolist()], chosen, lanes)
        emitted.append(tokens_emitted(acceptance, rounds, lanes))
    return float(np.std(emitted, ddof=1) / np.mean(emitted))


def rounds_by_drafts(executions: Sequence[GraphExecution], fit: Fit) -> Counter[tuple[Drafts, int]]:
    """How many rounds had the same drafts at about the same time, told by the last instant before."""
    step_ns = max(fit.last_submitted_ns // INSTANTS, 1)
    return Counter(
        (drafts_of(one)[0], fit.began_at + (one.started_at - fit.began_at) // step_ns * step_ns)
        for one in executions
        if one.graph_kind in DECODING_KINDS
    )


def tokens_emitted(acceptance: Acceptance, rounds: Mapping[tuple[Drafts, int], int], lanes: int) -> float:
    """Tokens that these rounds are expected to emit under this acceptance."""
    return sum(
        count * (lanes + accepted_tokens(drafts, lanes, acceptance.rate.at(at), acceptance.factors))
        for (drafts, at), count in rounds.items()
    )
