"""The union of intervals against a literal count of moments."""

import random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine_hooks.adapters.profiles.busy import BusyTime

INTERVALS = st.lists(st.tuples(st.integers(-40, 40), st.integers(0, 25)), max_size=12)


def busy_time(intervals: list[tuple[int, int]]) -> BusyTime:
    starts, lengths = ([pair[index] for pair in intervals] for index in (0, 1))
    started_at = np.array(starts, np.int64)
    return BusyTime(started_at, started_at + np.array(lengths, np.int64))


def moments(intervals: list[tuple[int, int]]) -> set[int]:
    return set().union(*(range(start, start + length) for start, length in intervals))


@given(INTERVALS)
def test_total_counts_each_moment_once(intervals: list[tuple[int, int]]) -> None:
    assert busy_time(intervals).total_ns == len(moments(intervals))


@given(INTERVALS, st.integers(-60, 80), st.integers(0, 60))
def test_idle_is_the_complement(intervals: list[tuple[int, int]], start: int, length: int) -> None:
    window = set(range(start, start + length))
    assert busy_time(intervals).idle_between(start, start + length) == len(window - moments(intervals))


@given(INTERVALS)
def test_busy_stretches_are_apart_and_in_order(intervals: list[tuple[int, int]]) -> None:
    busy = busy_time(intervals)
    assert (busy.started_at[1:] > busy.ended_at[:-1]).all()
    ends = [start + length for start, length in intervals]
    assert busy.span_ns == (max(ends) - min(start for start, _ in intervals) if intervals else 0)


@given(INTERVALS, st.randoms(use_true_random=False))
def test_order_and_repeats_mean_nothing(intervals: list[tuple[int, int]], order: random.Random) -> None:
    shuffled = order.sample(intervals, len(intervals))
    one, two = busy_time(intervals), busy_time(shuffled + intervals)
    assert one.started_at.tolist() == two.started_at.tolist()
    assert one.ended_at.tolist() == two.ended_at.tolist()
