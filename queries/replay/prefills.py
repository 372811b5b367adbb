"""How often a cell prefills, seen from a record: once in so many tokens, or in so much time."""

from collections.abc import Sequence
from itertools import accumulate
from typing import Final, NamedTuple

import numpy as np

from engine_hooks.contract.execution import GraphExecution
from engine_hooks.contract.names import DECODING_KINDS

PREFILLS_MIN: Final = 5
"""Fewer tell nothing of what they follow."""
CLEARLY: Final = 0.8
"""Prefills follow the clock if they keep so much better step with it than with the tokens."""


class Prefills(NamedTuple):
    """Executions that no scheduler chooses, as the simulator runs them. At most one of the first two is not 0."""

    tokens_between: int
    """They come once in so many tokens, as requests end."""
    rate_hz: float
    """They come at this rate."""


def prefills_of(rounds: Sequence[GraphExecution]) -> Prefills:
    """Fit them: requests that end bring them by tokens, new ones by time; what they keep step with tells."""
    numbered = [n for n, one in enumerate(rounds) if one.graph_kind not in DECODING_KINDS]
    if not numbered:
        return Prefills(0, 0.0)
    tokens = list(accumulate(one.batch_tokens_emitted or 0 for one in rounds))
    in_time = unevenness([rounds[number].started_at - rounds[0].started_at for number in numbered])
    by_time = len(numbered) >= PREFILLS_MIN and in_time < CLEARLY * unevenness([tokens[number] for number in numbered])
    if by_time or not tokens[-1]:
        elapsed_s = (rounds[-1].started_at - rounds[0].started_at) / 1e9
        return Prefills(0, len(numbered) / elapsed_s if elapsed_s else 0.0)
    return Prefills(max(round(tokens[-1] / len(numbered)), 1), 0.0)


def unevenness(positions: Sequence[int]) -> float:
    """How far these lie off evenly spaced ones, in spacings, root mean square; 0 for fewer than three."""
    if len(positions) < 3:
        return 0.0
    numbers = np.arange(len(positions))
    spacing, first = np.polyfit(numbers, positions, 1)
    off = np.asarray(positions) - (first + spacing * numbers)
    return float(np.sqrt(np.mean(off**2)) / spacing) if spacing > 0 else float("inf")
