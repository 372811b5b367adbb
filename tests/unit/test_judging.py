"""How often cells are judged, and how many by one statement."""

from datetime import UTC, datetime, timedelta

import pytest

from collector.errors import CollectorError
from collector.judging.judging import CELLS_AT_ONCE, JUDGE_EVERY_S, SHARE_MAX, SPAN_AT_ONCE, Stretch, judged_together
from collector.repeated_look import RepeatedLook

BEGIN = datetime(2026, 11, 1, tzinfo=UTC)


class Look(RepeatedLook):
    """Takes so much time, and so much CPU time of the process, by clocks that only it moves."""

    def __init__(self, takes_s: float, works_s: float, *, has_work_clock: bool = True, fails: bool = False) -> None:
        """`works_s` is that of all in the process."""
        self.now_s = self.worked_s = 0.0
        self._takes_s, self._works_s, self._fails = takes_s, works_s, fails
        super().__init__(
            "test",
            "not looked",
            JUDGE_EVERY_S,
            share_max=SHARE_MAX,
            clock=lambda: self.now_s,
            work_clock=(lambda: self.worked_s) if has_work_clock else None,
        )

    def see_to_it(self) -> None:
        self.now_s += self._takes_s
        self.worked_s += self._works_s
        if self._fails:
            raise CollectorError("away")


@pytest.mark.parametrize(
    ("look", "pause_s"),
    [
        (Look(0.1, 0.1), JUDGE_EVERY_S),
        (Look(4.0, 0.7), 14.0),
        (Look(4.0, 0.7, fails=True), 14.0),
        (Look(4.0, 4.0), 80.0),
        (Look(4.0, 7.0), 80.0),
        (Look(4.0, 0.7, has_work_clock=False), 80.0),
    ],
    ids=["short", "waiting", "waiting and failing", "a fleet", "others work too", "a server"],
)
def test_the_pause_is_after_what_was_worked(look: Look, pause_s: float) -> None:
    assert look.look_once() == pytest.approx(pause_s)


@pytest.mark.parametrize(
    ("others_cores", "pause_s"),
    [(0.3, 16.0), (0.0, 40.0), (1.9, JUDGE_EVERY_S)],
    ids=["some", "none", "no more than half a core"],
)
def test_what_others_work_in_the_pause_is_taken_off(others_cores: float, pause_s: float) -> None:
    look = Look(4.0, 2.0)
    look.now_s, look.worked_s = 10.0, 10 * others_cores
    assert look.look_once() == pytest.approx(pause_s)
    look.now_s += pause_s
    assert look.look_once() == pytest.approx(40.0), "they rested"


def test_a_busy_process_is_not_taken_for_a_waiting_one() -> None:
    look = Look(4.0, 8.0)
    for _ in range(3):
        assert look.look_once() == pytest.approx(80.0)
        look.now_s, look.worked_s = look.now_s + 80, look.worked_s + 160


def stretch(minute: float, cells: int = 40) -> Stretch:
    first = BEGIN + timedelta(minutes=minute)
    return Stretch(first, first + timedelta(minutes=9.5), cells)


def test_stretches_of_a_few_engines_are_judged_together() -> None:
    found = [stretch(minute) for minute in (50, 30, 20, 10, 0)]
    assert judged_together(found) == [Stretch(found[-1].first, found[0].last, 200)]


def test_one_that_reaches_beyond_the_others_counts_with_all_of_it() -> None:
    long = Stretch(BEGIN, BEGIN + timedelta(minutes=58), 1)
    assert judged_together([stretch(10), long]) == [Stretch(BEGIN, long.last, 41)]


@pytest.mark.parametrize(
    "found",
    [[stretch(10, CELLS_AT_ONCE), stretch(0, 1)], [stretch(SPAN_AT_ONCE / timedelta(minutes=1)), stretch(0)], []],
    ids=["of many cells", "far apart", "none"],
)
def test_others_are_not(found: list[Stretch]) -> None:
    assert judged_together(found) == found
