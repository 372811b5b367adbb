"""While a backup is made, nobody who looks at the store now and again changes it."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from collector.acceptance import StoreUnavailableError
from collector.repeated_look import RepeatedLook
from collector.service import Collector, CollectorSettings

LONG_S = 60.0


class Look(RepeatedLook):
    """Counts its looks, each of which lasts until it is let go."""

    def __init__(self) -> None:
        super().__init__("test", "not looked", LONG_S)
        self.looks = 0
        self.began, self.may_end = threading.Event(), threading.Event()
        self.may_end.set()

    def see_to_it(self) -> None:
        self.looks += 1
        self.began.set()
        assert self.may_end.wait(LONG_S)


def test_a_look_is_left_out_while_it_rests() -> None:
    look = Look()
    with look.resting():
        assert look.look_once() == LONG_S
        assert look.looks == 0
    look.look_once()
    assert look.looks == 1


def test_a_look_under_way_is_waited_for_and_not_for_ever() -> None:
    look = Look()
    look.may_end.clear()
    thread = threading.Thread(target=look.look_once)
    thread.start()
    try:
        assert look.began.wait(LONG_S)
        with pytest.raises(StoreUnavailableError, match="test has been under way"), look.resting(within_s=0.01):
            pass
    finally:
        look.may_end.set()
        thread.join()
    with look.resting():
        assert look.looks == 1


def test_for_a_backup_every_look_of_a_collector_rests_and_then_its_writer(tmp_path: Path) -> None:
    looks = [Look(), Look()]

    class Writer:
        @contextmanager
        def resting(self) -> Iterator[None]:
            yield

    writer: Any = Writer()
    collector = Collector(CollectorSettings(tmp_path, ""))
    with ExitStack() as running:
        for look in looks:
            collector._keep_looking(running, look)
        with collector._resting(writer):
            for look in looks:
                look.look_once()
            assert [look.looks for look in looks] == [0, 0]
        for look in looks:
            look.look_once()
        assert [look.looks for look in looks] == [1, 1]
