"""Where the level of a noisy series changes."""

from typing import Final

import numpy as np

from queries.findings.timeline import Floats

CHANGE_MIN: Final = 0.025
"""Smaller changes of a level are not looked at."""
CHANGE_Z: Final = 6.0
SIDE_MIN: Final = 5
"""Values needed on either side of a change."""
SPLITS_MAX: Final = 16
WILD: Final = 0.5
"""Logarithms farther than this from the median count as that far."""


def steps_of(values: Floats) -> list[tuple[int, float]]:
    """Each change of level: where the new one begins, and by how much, as a logarithm; by binary segmentation."""
    logs = np.log(np.maximum(values, 1.0))
    places = _places(logs, 0, len(logs), SPLITS_MAX)
    edges = [0, *places, len(logs)]
    levels = [float(np.median(logs[edges[n] : edges[n + 1]])) for n in range(len(edges) - 1)] if len(logs) else []
    steps = [(place, levels[n + 1] - levels[n]) for n, place in enumerate(places)]
    return [step for step in steps if abs(step[1]) >= np.log1p(CHANGE_MIN)]


def _places(logs: Floats, low: int, high: int, splits: int) -> list[int]:
    count = high - low
    if count < 2 * SIDE_MIN or splits < 2:
        return []
    part = logs[low:high]
    noise = max(1.4826 * float(np.median(np.abs(np.diff(part)))) / np.sqrt(2), 1e-4)
    middle = float(np.median(part))
    part = np.clip(part, middle - WILD, middle + WILD)
    sums = np.cumsum(part - part.mean())[:-1]
    sizes = np.arange(1, count)
    scores = np.abs(sums) / (noise * np.sqrt(sizes * (count - sizes) / count))
    scores[: SIDE_MIN - 1] = scores[count - SIDE_MIN :] = 0
    place = low + int(np.argmax(scores)) + 1
    step = abs(float(np.median(logs[place:high]) - np.median(logs[low:place])))
    if scores.max() < CHANGE_Z or step < np.log1p(CHANGE_MIN):
        return []
    return [*_places(logs, low, place, splits // 2), place, *_places(logs, place, high, splits // 2)]
