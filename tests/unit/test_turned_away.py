"""When it is told that requests are turned away, and that they are no longer."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from structlog.testing import capture_logs
from structlog.typing import EventDict

from collector.acceptance import Outcome, QueueFullError
from collector.spool import turned_away
from collector.spool.records import SpoolLimits
from collector.spool.spool import Spool
from collector.spool.turned_away import TurnedAway
from tests.fixtures.contract_cases import SpanCase, request_of
from tests.fixtures.fake_store import FakeStore, request, writing


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
    turned_away.end(turned_away.ever)
    turned_away.end(turned_away.ever)
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
    turned_away.end(turned_away.ever)
    clock.now_s += 500
    turned_away.add("the disk is full", 200)
    assert turned_away.largest_bytes() == 200
    clock.now_s += 1
    turned_away.end(turned_away.ever)
    assert logged[-1] == AGAIN | {"after_s": 1.0, "turned_away": 1}


def test_a_larger_request_that_is_turned_away_while_room_is_looked_for_is_not_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its sender comes again after 5 s: until then /readyz would say that all is stored."""
    large = request_of([SpanCase("1", attributes={"graph.sequence": 1, "cell.id": "x" * 100_000})])
    bounds = SpoolLimits(bytes_max=80_000, free_bytes_min=0)
    looked = Spool.no_room_for
    with writing(FakeStore(), tmp_path, spool_limits=bounds) as written:

        def overtaken(spool: Spool, size: int) -> str:
            reason = looked(spool, size)
            monkeypatch.setattr(Spool, "no_room_for", looked)
            with pytest.raises(QueueFullError):
                written.writer.accept(large, "http")
            return reason

        assert written.writer.spool_trouble() == ""
        monkeypatch.setattr(Spool, "no_room_for", overtaken)
        written.writer.spool_trouble()
        assert "TACHOGRAPH_SPOOL_BYTES_MAX" in written.writer.spool_trouble()


def test_a_log_that_nobody_reads_holds_up_nobody_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    telling, read = threading.Event(), threading.Event()

    class Stuck:
        def warning(self, *_: object, **__: object) -> None:
            telling.set()
            assert read.wait(120)

    monkeypatch.setattr(turned_away, "log", Stuck())
    large = request_of([SpanCase("1", attributes={"graph.sequence": 1, "cell.id": "x" * 100_000})])
    bounds = SpoolLimits(bytes_max=50_000, free_bytes_min=0)
    with writing(FakeStore(), tmp_path, spool_limits=bounds) as written, ThreadPoolExecutor() as sending:
        refused = sending.submit(written.writer.accept, large, "http")
        try:
            assert telling.wait(60)
            taken = sending.submit(lambda: written.writer.accept(request(2), "http").result(30))
            assert taken.result(30) == Outcome(1)
        finally:
            read.set()
        with pytest.raises(QueueFullError):
            refused.result(30)
