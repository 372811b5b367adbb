"""Being asked to stop, whenever the signal comes and whichever thread it reaches."""

import os
import signal
import threading
import time

import pytest

from collector.stop_signals import StopSignals


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_wait(number: signal.Signals) -> None:
    with StopSignals() as asked:
        assert not asked.wait(0)
        threading.Timer(0.01, os.kill, (os.getpid(), number)).start()
        assert asked.wait(60)
        assert asked.is_set()


def test_a_signal_that_another_thread_receives_ends_the_wait() -> None:
    """The kernel may choose any thread; only the main one runs handlers."""

    def to_itself() -> None:
        signal.pthread_kill(threading.get_ident(), signal.SIGTERM)

    with StopSignals() as asked:
        threading.Timer(0.05, to_itself).start()
        began = time.monotonic()
        assert asked.wait(60)
        assert time.monotonic() - began < 5


def test_a_signal_before_the_wait_is_not_lost() -> None:
    with StopSignals() as asked:
        os.kill(os.getpid(), signal.SIGTERM)
        assert asked.is_set()
        assert asked.wait(60)


def test_signals_at_any_instant_of_the_wait() -> None:
    """A handler that takes a lock hangs here sooner or later: it interrupts the thread that holds it."""
    for turn in range(300):
        with StopSignals() as asked:
            threading.Timer(turn * 1e-6, os.kill, (os.getpid(), signal.SIGTERM)).start()
            assert asked.wait(60)


def test_other_signals_do_not_end_the_wait() -> None:
    before = signal.signal(signal.SIGUSR1, lambda *_: None)
    try:
        with StopSignals() as asked:
            os.kill(os.getpid(), signal.SIGUSR1)
            assert not asked.wait(0.05)
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_the_handlers_of_before_come_back() -> None:
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with StopSignals():
        assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] != handlers
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == handlers
    assert signal.set_wakeup_fd(-1) == -1
