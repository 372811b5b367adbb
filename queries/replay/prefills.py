"""How often a cell prefills, seen from a record: once in so many tokens, or in so much time."""

import statistics
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Final, NamedTuple

from engine_hooks.contract.execution import GraphExecution
from queries.replay.planning import CHOSEN_KINDS

GAPS_MIN: Final = 3
"""Fewer gaps between prefills tell nothing of what they follow."""
CLEARLY: Final = 0.8
"""Prefills follow the clock if their gaps in time are so much more even than those in tokens."""


class Prefills(NamedTuple):
    """Executions that no scheduler chooses, as the simulator runs them. At most one of the first two is not 0."""

    tokens_between: int
    """They come once in so many tokens, as requests end."""
    rate_hz: float
    """They come at this rate."""


def prefills_of(rounds: Sequence[GraphExecution]) -> Prefills:
    """Fit them: requests that end bring them by tokens, new ones by time; the more even gaps tell."""
    numbered = [n for n, one in enumerate(rounds) if one.graph_kind not in CHOSEN_KINDS]
    if not numbered:
        return Prefills(0, 0.0)
    tokens = list(accumulate(one.batch_tokens_emitted or 0 for one in rounds))
    in_tokens = [tokens[after] - tokens[before] for before, after in pairwise(numbered)]
    in_time = [rounds[after].started_at - rounds[before].started_at for before, after in pairwise(numbered)]
    by_time = len(in_time) >= GAPS_MIN and unevenness(in_time) < CLEARLY * unevenness(in_tokens)
    if by_time or not tokens[-1]:
        elapsed_s = (rounds[-1].started_at - rounds[0].started_at) / 1e9
        return Prefills(0, len(numbered) / elapsed_s if elapsed_s else 0.0)
    return Prefills(max(round(tokens[-1] / len(numbered)), 1), 0.0)


def unevenness(gaps: Sequence[int]) -> float:
    """Standard deviation over the mean."""
    mean = statistics.fmean(gaps)
    return statistics.pstdev(gaps) / mean if mean else 0.0
