"""The collector's log: one line an event on standard error, for people on a terminal and as JSON elsewhere.

A failure that repeats is told when it is news, and then at most once a minute, with how often it came meanwhile.
"""

import logging
import re
import sys
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final, TextIO

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from collector.telemetry.log_format import LogFormat

REPEATED_EVERY_S: Final = 60.0
_KNOWN_MAX: Final = 1000
_FIGURES: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d+")
_TELL_WHAT_THEY_RAISE: Final = ("clickhouse_connect", "urllib3")
"""Libraries whose warnings are of errors that reach us, and that we tell ourselves."""
_TROUBLE: Final = ("warning", "error", "critical", "exception")


class Repeated:
    """Lets a failure through when it is news, and else once in `REPEATED_EVERY_S`.

    Two failures are the same when their words are: figures in them, such as a duration or an id, do not count. What
    is no failure is a change for the better: after it every failure is news again.
    """

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._told: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def admit(self, words: str) -> int | None:
        """How often it came since it was last told; None where it is not to be told now."""
        key, now = _FIGURES.sub("#", words), self._now_s()
        told_at, untold = self._told.pop(key, (float("-inf"), 0))
        is_due = now - told_at >= REPEATED_EVERY_S
        self._told[key] = (now, 0) if is_due else (told_at, untold + 1)
        while len(self._told) > _KNOWN_MAX:
            self._told.popitem(last=False)
        return untold if is_due else None

    def forget(self) -> None:
        """Everything is news again."""
        self._told.clear()

    def __call__(self, _logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
        """As a processor of structlog."""
        if method not in _TROUBLE:
            self.forget()
            return event
        untold = self.admit(f"{event.get('event')} {event.get('error', '')}")
        if untold is None:
            raise structlog.DropEvent
        if untold:
            event["repeated"] = untold
        return event


class _RepeatedByLibraries(logging.Filter):
    """The same for what libraries log by the standard library."""

    def __init__(self) -> None:
        super().__init__()
        self._repeated = Repeated()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to tell it."""
        return self._repeated.admit(f"{record.name} {record.getMessage()}") is not None


def configure_logs(log_format: LogFormat = "auto", stream: TextIO | None = None) -> None:
    """Send every event, and the warnings of libraries, to a stream.

    Args:
        log_format: See `LogFormat`.
        stream: Where to; standard error, where none is given.
    """
    out = stream or sys.stderr
    is_json = log_format == "json" or (log_format == "auto" and not out.isatty())
    described: list[Processor] = [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    rendered: list[Processor] = [
        structlog.processors.format_exc_info if is_json else _in_one_line,
        structlog.processors.JSONRenderer() if is_json else structlog.dev.ConsoleRenderer(colors=out.isatty()),
    ]
    structlog.configure(
        processors=[Repeated(), *described, *rendered],
        logger_factory=structlog.PrintLoggerFactory(out),
        cache_logger_on_first_use=False,
    )
    _configure_libraries(out, described, rendered)


def _configure_libraries(out: TextIO, described: list[Processor], rendered: list[Processor]) -> None:
    handler = logging.StreamHandler(out)
    handler.addFilter(_RepeatedByLibraries())
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *rendered],
            foreign_pre_chain=described,
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.WARNING)
    for name in _TELL_WHAT_THEY_RAISE:
        logging.getLogger(name).propagate = False


def _in_one_line(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """An exception by its name, its words and the place it comes from; JSON has all of its traceback."""
    fault: Any = event.pop("exc_info", None)
    if isinstance(fault, tuple):
        fault = fault[1]
    elif fault is True:
        fault = sys.exc_info()[1]
    if not isinstance(fault, BaseException):
        return event
    place = fault.__traceback__
    while place and place.tb_next:
        place = place.tb_next
    at = f" ({place.tb_frame.f_code.co_filename}:{place.tb_lineno})" if place else ""
    event["fault"] = f"{type(fault).__name__}: {' '.join(str(fault).split())}{at}"
    return event
