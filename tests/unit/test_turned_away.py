"""When it is told that requests are turned away, and that they are no longer."""

from collections.abc import Iterator

import pytest
from structlog.testing import capture_logs
from structlog.typing import EventDict

from collector.spool.turned_away import TurnedAway


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def logged() -> Iterator[list[EventDict]]:
    with capture_logs() as logs:
        yield logs


AGAIN = {"event": "requests are taken again", "log_level": "info"}


def test_the_largest_has_to_have_room(logged: list[EventDict]) -> None:
    clock = Clock()
    turned_away = TurnedAway(clock)
    assert turned_away.largest_bytes() == 0
    for size in (100, 300, 200):
        turned_away.add("the disk is full", size)
        clock.now_s += 10
    assert turned_away.largest_bytes() == 300
    turned_away.end()
    turned_away.end()
    assert turned_away.largest_bytes() == 0
    assert [event["bytes"] for event in logged[:3]] == [100, 300, 200]
    assert logged[3:] == [AGAIN | {"after_s": 30.0, "turned_away": 3}]


def test_it_is_over_when_nobody_was_turned_away_for_a_minute(logged: list[EventDict]) -> None:
    clock = Clock()
    turned_away = TurnedAway(clock)
    turned_away.add("the disk is full", 300)
    clock.now_s += 59
    assert turned_away.largest_bytes() == 300
    clock.now_s += 1
    assert turned_away.largest_bytes() == 0
    assert logged[1:] == [AGAIN | {"after_s": 60.0, "turned_away": 1}]


def test_what_begins_again_begins_anew(logged: list[EventDict]) -> None:
    clock = Clock()
    turned_away = TurnedAway(clock)
    turned_away.add("the disk is full", 300)
    turned_away.end()
    clock.now_s += 500
    turned_away.add("the disk is full", 200)
    assert turned_away.largest_bytes() == 200
    clock.now_s += 1
    turned_away.end()
    assert logged[-1] == AGAIN | {"after_s": 1.0, "turned_away": 1}
