"""Work that may take long, beside the screen: one at a time, and of what waits only the latest."""

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

Job = TypeVar("Job")
Result = TypeVar("Result")


class Asking(Generic[Job, Result]):
    """One thread that does jobs. It ends with the process: an answer that never comes holds nobody up.

    Args:
        work: Does a job; raises nothing.
        tell: Takes each result, in this thread.
    """

    def __init__(self, name: str, work: Callable[[Job], Result], tell: Callable[[Job, Result], None]) -> None:
        self._work = work
        self._tell = tell
        self._changed = threading.Condition()
        self._waiting: list[Job] = []
        self._busy_since: float | None = None
        self._is_over = False
        threading.Thread(target=self._run, name=name, daemon=True).start()

    def ask(self, job: Job) -> None:
        """Do this next; what waited is forgotten."""
        with self._changed:
            self._waiting = [job]
            self._changed.notify()

    def stop(self) -> None:
        """Do no more, and tell nothing more."""
        with self._changed:
            self._is_over = True
            self._changed.notify()

    @property
    def busy_s(self) -> float:
        """For how long the present job has taken, in s."""
        since = self._busy_since
        return 0.0 if since is None else time.monotonic() - since

    def _run(self) -> None:
        while True:
            with self._changed:
                self._busy_since = None
                self._changed.wait_for(lambda: self._waiting or self._is_over)
                if self._is_over:
                    return
                job = self._waiting.pop()
                self._busy_since = time.monotonic()
            result = self._work(job)
            if not self._is_over:
                self._tell(job, result)
