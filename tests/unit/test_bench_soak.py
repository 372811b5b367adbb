"""Whether a soak's memory is flat: what is kept for good is told from what swings."""

import random
from itertools import pairwise
from typing import Any

from tests.benchmarks.ingest_soak import complaints, trend_of, windows_of

EVERY_S = 5


def curve(minutes: float, leak_mb_per_minute: float = 0.0, seed: int = 1) -> list[dict[str, float]]:
    """A collector's memory as it was measured: it fills up in the first minutes, parts that were merged are let go of
    every 75 s, and inserts and merges take what they need for seconds."""
    swings = random.Random(seed)
    return [
        {
            "at_s": at_s,
            "memory_mb": 550
            - 60 * 0.5 ** (at_s / 30)
            + 25 * (at_s % 75) / 75
            + swings.expovariate(1 / 12)
            + leak_mb_per_minute * at_s / 60,
        }
        for at_s in range(0, int(minutes * 60), EVERY_S)
    ]


def complaints_of(points: list[dict[str, float]], stored: int = 100) -> list[str]:
    trend = trend_of(points)
    measured: dict[str, Any] = {"acknowledged": 100, "stored": stored, "memory_trend": trend and trend._asdict()}
    return complaints(measured)


def test_memory_that_fills_up_and_swings_is_flat() -> None:
    flat = sum(complaints_of(curve(20, seed=seed)) == [] for seed in range(20))
    assert flat >= 18, "an interval of 95 % is to be below the limit"


def test_a_leak_of_a_megabyte_a_minute_is_told() -> None:
    """Though it is no more than the swings within 75 s."""
    for seed in range(20):
        (complaint,) = complaints_of(curve(20, leak_mb_per_minute=1.0, seed=seed))
        assert complaint.startswith("memory is not flat: +")
    assert complaints_of(curve(20, leak_mb_per_minute=3.0)) != []


def test_memory_that_falls_is_flat() -> None:
    assert complaints_of(curve(20, leak_mb_per_minute=-3.0)) == []


def test_too_few_minutes_tell_nothing() -> None:
    assert trend_of(curve(6)) is None
    assert trend_of(curve(10)) is not None


def test_windows_are_whole() -> None:
    windows = windows_of(curve(19.9, leak_mb_per_minute=2.0))
    assert [window.from_minute for window in windows] == [0, 5, 10, 15]
    steps = [later.mean_mb - earlier.mean_mb for earlier, later in pairwise(windows[1:])]
    assert all(4 < step < 16 for step in steps), "ten by the leak"
    assert all(window.least_mb < window.mean_mb - 10 for window in windows)
    assert [window.from_minute for window in windows_of(curve(13))] == [0, 5]


def test_what_is_lost_is_told() -> None:
    assert complaints_of(curve(20), stored=99) == ["100 executions acknowledged, 99 stored"]
