"""Being asked to stop by a signal, at any instant and in whichever thread the system delivers it.

A handler that sets a `threading.Event` is not enough. A signal that comes between the interpreter's last look for
signals and its sleep in `wait` is not noticed until the next one (about once in 3,000 tries); one that comes while
`wait` holds the event's lock blocks the handler on the lock of the very thread that it interrupted. So the handlers
here do nothing: the interpreter writes each signal's number to a pipe (`signal.set_wakeup_fd`), and the main thread
waits for the pipe.
"""

import select
import signal
import socket
from collections.abc import Iterable
from types import FrameType, TracebackType
from typing import Self

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopSignals:
    """Whether the process was asked to stop, as a context manager of the main thread.

    The handlers of before come back afterwards.
    """

    def __init__(self, numbers: Iterable[signal.Signals] = STOP_SIGNALS) -> None:
        self._numbers = frozenset(numbers)
        self._asked = False

    def __enter__(self) -> Self:
        self._reader, self._writer = socket.socketpair()
        self._reader.setblocking(False)
        self._writer.setblocking(False)
        self._handlers = {number: signal.signal(number, _leave_it_to_the_pipe) for number in self._numbers}
        self._pipe_before = signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        signal.set_wakeup_fd(self._pipe_before)
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        self._reader.close()
        self._writer.close()

    def is_set(self) -> bool:
        """Whether one of the signals has come."""
        return self.wait(0)

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for one of the signals, at most so long; whether it has come. None: for ever."""
        while not self._asked and select.select([self._reader], [], [], timeout_s)[0]:
            # Every signal that Python handles is written there, others than ours among them.
            self._asked = not self._numbers.isdisjoint(self._reader.recv(4096))
        return self._asked


def _leave_it_to_the_pipe(_signal: int, _frame: FrameType | None) -> None:
    pass
