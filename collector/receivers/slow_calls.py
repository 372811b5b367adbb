"""Ends calls whose message does not arrive: gRPC for Python waits for it as long as the client likes."""

import threading
import time
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Call(Protocol):
    """A call under way: `grpc.ServicerContext`."""

    def cancel(self) -> object: ...


class SlowCalls:
    """One thread that cancels what is watched for too long. `start` it once, `stop` it once."""

    def __init__(self, within_s: float) -> None:
        self._within_s = within_s
        # In the order of their ends, because all may take equally long.
        self._due: OrderedDict[object, tuple[float, Call]] = OrderedDict()
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="tachograph-slow-calls", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    @contextmanager
    def watching(self, call: Call) -> Iterator[None]:
        """Cancel the call unless this block ends in time."""
        key = object()
        with self._lock:
            self._due[key] = time.monotonic() + self._within_s, call
        try:
            yield
        finally:
            with self._lock:
                self._due.pop(key, None)

    def _run(self) -> None:
        while not self._stopping.wait(min(1.0, self._within_s / 4)):
            for call in self._overdue():
                call.cancel()

    def _overdue(self) -> list[Call]:
        now = time.monotonic()
        with self._lock:
            calls = []
            while self._due and next(iter(self._due.values()))[0] <= now:
                calls.append(self._due.popitem(last=False)[1][1])
            return calls
