"""Intervals over paired cells, and the verdicts that rest on them."""

import random

import pytest

from engine_hooks.simulator.intervals import Verdict, bootstrap_interval, compare_pairs, t_interval


def test_student_interval() -> None:
    # Five values of sd sqrt(2.5): t(0.975, 4) = 2.7764.
    interval = t_interval([1.0, 2.0, 3.0, 4.0, 5.0])
    assert interval.mean == 3.0
    assert interval.ci95 == pytest.approx((3 - 2.7764 * 0.70711, 3 + 2.7764 * 0.70711), abs=1e-3)


def test_one_value_has_no_interval() -> None:
    assert t_interval([2.0]) == bootstrap_interval([2.0]) == (2.0, None)


def test_equal_values_have_a_point() -> None:
    assert bootstrap_interval([1.5] * 8) == (1.5, (1.5, 1.5))


def test_the_same_values_give_the_same_interval() -> None:
    values = [random.Random(number).gauss(1, 2) for number in range(40)]
    assert bootstrap_interval(values) == bootstrap_interval(values)


@pytest.mark.parametrize(("gain", "verdict"), [(5.0, Verdict.BETTER), (-5.0, Verdict.WORSE), (0.0, "undetermined")])
def test_verdicts(gain: float, verdict: Verdict) -> None:
    noise = random.Random(3)
    before = [noise.gauss(100, 10) for _ in range(40)]
    after = [speed + gain + noise.gauss(0, 1) for speed in before]
    comparison = compare_pairs(before, after)
    assert comparison.verdict == verdict
    assert comparison.pairs == 40
    assert comparison.shift_percent.mean == pytest.approx(gain, abs=0.5)


def test_five_pairs_that_differ_decide_nothing() -> None:
    before = [100.0] * 20
    assert compare_pairs(before, [104.0] * 5 + [100.0] * 15).verdict == Verdict.UNDETERMINED
    assert compare_pairs(before, [104.0] * 6 + [100.0] * 14).verdict == Verdict.BETTER


def test_a_single_pair_is_undetermined() -> None:
    comparison = compare_pairs([100.0], [110.0])
    assert comparison.shift_percent == (pytest.approx(10.0), None)
    assert comparison.verdict == Verdict.UNDETERMINED
