"""Work with an end: each kind of it runs in a thread of its own, and whoever waits for it waits only so long."""

import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

Result = TypeVar("Result")


class TooSlowError(Exception):
    """It was not done in time, or still runs from an earlier call."""


class Call(Generic[Result]):
    """One piece of work, under way."""

    def __init__(self, work: Callable[[], Result], name: str) -> None:
        self._work = work
        self._done = threading.Event()
        self._result: Result | None = None
        self._error: BaseException | None = None
        # A daemon: a store that hangs must not hold up the end of the process.
        threading.Thread(target=self._run, name=name, daemon=True).start()

    def _run(self) -> None:
        try:
            self._result = self._work()
        except BaseException as error:
            self._error = error
        self._done.set()

    @property
    def is_done(self) -> bool:
        return self._done.is_set()

    def result(self, timeout_s: float) -> Result:
        """What came of it.

        Raises:
            TooSlowError: nothing yet.
            Exception: whatever the work raised.
        """
        if not self._done.wait(max(0.0, timeout_s)):
            raise TooSlowError(f"no answer within {timeout_s:.1f} s")
        if self._error:
            raise self._error
        return self._result  # type: ignore[return-value]


class Calls:
    """Work by name, at most one of each name under way: what hangs is not started again, so nothing piles up."""

    def __init__(self) -> None:
        self._under_way: dict[str, Call[Any]] = {}

    def start(self, name: str, work: Callable[[], Result]) -> Call[Result] | None:
        """Begin; None where the last one of that name still runs."""
        last = self._under_way.get(name)
        if last and not last.is_done:
            return None
        self._under_way = {other: one for other, one in self._under_way.items() if not one.is_done}
        call = Call(work, f"alerts-{name}")
        self._under_way[name] = call
        return call
