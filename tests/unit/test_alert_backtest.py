"""Looking back: what would have fired, with as few questions as tell the same."""

import io
from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from queries.alerts.backtest import LOOKS, Episode, backtest, planned
from queries.alerts.rule import Rule
from queries.alerts.sources import GentleSource, Spans
from queries.commands.alerts.looks import LINE_EVERY_S, Lines
from tests.fixtures.alert_evaluators import START, row, rule

STEP_S = 30.0
TROUBLE = st.lists(st.tuples(st.integers(0, 200), st.integers(1, 12)), max_size=6)


class Past:
    """A host that is in trouble for stretches of steps, and otherwise well."""

    def __init__(self, stretches: Sequence[tuple[int, int]], *, is_suspecting: bool) -> None:
        self._stretches = stretches
        self._is_suspecting = is_suspecting
        self.looks = 0

    def rows(self, rule: Rule, at: datetime, *, is_now: bool) -> list[dict[str, Any]]:
        assert (rule.alert, is_now) == ("TooMuch", False)
        self.looks += 1
        step = (at - START).total_seconds() / STEP_S
        return [row(2.0 if any(first <= step < first + count for first, count in self._stretches) else 0.0)]

    def suspects(self, rule: Rule, since: datetime, until: datetime) -> Spans | None:  # noqa: ARG002
        if not self._is_suspecting:
            return None
        return tuple((moment(first), moment(first + count)) for first, count in self._stretches)


def moment(step: float) -> datetime:
    return START + timedelta(seconds=step * STEP_S)


def episodes_of(past: Past, **fields: Any) -> tuple[Episode, ...]:
    one = rule(**fields)
    return backtest(one, past, planned(one, past, START, moment(240), STEP_S))


@given(TROUBLE, st.sampled_from(["0s", "60s"]), st.sampled_from(["0s", "120s"]))
def test_what_is_not_suspected_need_not_be_looked_at(
    stretches: list[tuple[int, int]], for_: str, keep_firing_for: str
) -> None:
    fields = {"for": for_, "keep_firing_for": keep_firing_for}
    sparing, thorough = Past(stretches, is_suspecting=True), Past(stretches, is_suspecting=False)
    assert episodes_of(sparing, **fields) == episodes_of(thorough, **fields)
    assert thorough.looks == 241
    # Of each stretch, and of each episode until it ended.
    assert sparing.looks <= sum(count + 1 + 6 for _, count in stretches)


def test_an_episode_that_flaps_is_one() -> None:
    past = Past([(10, 2), (14, 1), (17, 3)], is_suspecting=True)
    assert len(episodes_of(past)) == 3
    (episode,) = episodes_of(past, keep_firing_for="120s")
    assert (episode.fired_at, episode.ended_at) == (moment(10), moment(24))


@pytest.mark.parametrize(
    ("fields", "hours", "wanted_s", "expected_s"),
    [
        ({}, 1, None, 30),
        ({}, 6, None, 60),
        ({}, 168, None, 1680),
        ({"every": "60s"}, 1, None, 60),
        ({"every": "60s"}, 168, 10.0, 60),
        ({}, 168, 10.0, 10),
    ],
)
def test_how_far_apart_looks_are(fields: dict[str, Any], hours: int, wanted_s: float | None, expected_s: float) -> None:
    until = START + timedelta(hours=hours)
    plan = planned(rule(**fields), Past([], is_suspecting=False), START, until, wanted_s)
    assert plan.step_s == expected_s
    if wanted_s is None:
        assert len(plan.at) <= LOOKS + 1


def test_only_what_is_suspected_makes_looks_rarer() -> None:
    week = START + timedelta(days=7)
    hours = [(step, 240) for step in range(0, 1200, 200)]
    assert planned(rule(), Past([(9, 20)], is_suspecting=True), START, week, None).step_s == 30
    assert planned(rule(), Past(hours, is_suspecting=True), START, week, None).step_s == 110, "of 1240 steps"


def test_it_rests_for_as_long_as_each_answer_took() -> None:
    seconds = [0.0]
    rests: list[float] = []

    class Slow(Past):
        def rows(self, rule: Rule, at: datetime, *, is_now: bool) -> list[dict[str, Any]]:
            seconds[0] += 0.5 * len(rests)
            return super().rows(rule, at, is_now=is_now)

    gentle = GentleSource(Slow([], is_suspecting=False), lambda: seconds[0], rests.append)
    backtest(rule(), gentle, planned(rule(), gentle, START, moment(30), STEP_S))
    assert rests[:3] == [0.0, 0.5, 1.0]
    assert max(rests) == 10.0, "but not for ever"
    assert all(later >= earlier for earlier, later in pairwise(rests))


def test_without_a_terminal_it_says_now_and_then_how_far_it_is() -> None:
    said = io.StringIO()
    seconds = [0.0]
    lines = Lines(100, Console(file=said), lambda: seconds[0])
    for name, count in (("TooMuch", 40), ("Other", 60)):
        for _ in lines.watching(name, [START] * count):
            seconds[0] += LINE_EVERY_S / 10
    told = said.getvalue().splitlines()
    assert len(told) == 10
    assert told[0] == "TooMuch: 10 of 100 looks, about 135 s left"
    assert told[-1] == "Other: 100 of 100 looks, about 0 s left"
