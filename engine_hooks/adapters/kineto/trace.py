"""What matters of a trace, in columns: 48 bytes a device operation, 16 a host call, nothing of the rest.

Times are integer nanoseconds, from the file's microseconds by decimal arithmetic: a double
cannot hold the nanosecond of a time in 2022. `displayTimeUnit` says how a viewer shows
times, not what they are in; they always are microseconds.
"""

import re
from array import array
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, Final, NamedTuple

from engine_hooks.adapters.kineto.errors import TraceMalformedError
from engine_hooks.adapters.kineto.reading import TraceReader

GRAPH_LAUNCH: Final = re.compile(r"(cuda|hip|cu)GraphLaunch(_\w+)?")
"""The runtime's and the driver's call, with CUPTI's suffixes (`_v10000`, `_ptsz`)."""
DEVICE_CATEGORIES: Final = frozenset({"kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset"})
"""In lower case; the short ones are of Kineto before 2021."""
ANNOTATION_CATEGORY: Final = "user_annotation"
TIME_US_MAX: Final = 2**62 // 1000
INT64_MAX: Final = 2**63 - 1


class LaunchCall(NamedTuple):
    """One call that launched a graph. Times in ns."""

    correlation: int
    started_at: int
    ended_at: int
    thread: tuple[str, str]
    """Process and thread, as the file names them."""


class Annotation(NamedTuple):
    """A range that the engine marked on one of its threads. Times in ns."""

    started_at: int
    ended_at: int
    name: str


class DeviceOperations:
    """Kernels, copies and sets, a column for each field, in the file's order. Times in ns."""

    def __init__(self) -> None:
        self.started_at = array("q")
        self.ended_at = array("q")
        self.correlation = array("q")
        """-1 where the file has none."""
        self.device = array("q")
        self.stream = array("q")
        self.shape = array("q")
        """Index into `Trace.shapes`."""


class HostCalls:
    """Runtime calls that carry a correlation id, graph launches among them. Times in ns."""

    def __init__(self) -> None:
        self.correlation = array("q")
        self.started_at = array("q")


class Trace:
    """One trace file, read whole.

    Raises:
        TraceUnreadableError: see `TraceReader`.
        TraceMalformedError: an event that matters has no usable time; names the event, counted from 0.
    """

    def __init__(self, path: Path, on_progress: Callable[[int], None] = lambda _: None) -> None:
        self.path = path
        self.operations = DeviceOperations()
        self.host_calls = HostCalls()
        self.launches: list[LaunchCall] = []
        self.annotations: dict[tuple[str, str], list[Annotation]] = {}
        self._shape_ids: dict[str, int] = {}
        self._event_number = -1
        reader = TraceReader(path, on_progress)
        for self._event_number, event in enumerate(reader):
            self._take(event)
        self.event_count = reader.event_count
        self.header: Mapping[str, list[Any]] = reader.header
        self.content_digest = reader.content_digest

    @property
    def shapes(self) -> list[str]:
        """What distinguishes one operation from another besides its time: name, grid and block."""
        return list(self._shape_ids)

    def _take(self, event: Any) -> None:
        if not isinstance(event, dict):
            raise self._malformed("is not an object")
        if event.get("ph") != "X":
            return
        category = str(event.get("cat", "")).lower()
        arguments = event.get("args")
        arguments = arguments if isinstance(arguments, dict) else {}
        if category in DEVICE_CATEGORIES:
            self._take_operation(event, arguments)
        elif category == ANNOTATION_CATEGORY:
            started_at, ended_at = self._interval(event)
            self.annotations.setdefault(_thread(event), []).append(
                Annotation(started_at, ended_at, str(event.get("name", "")))
            )
        elif (correlation := _integer(arguments.get("correlation"))) is not None:
            self._take_call(event, correlation)

    def _take_operation(self, event: dict[str, Any], arguments: dict[str, Any]) -> None:
        started_at, ended_at = self._interval(event)
        columns = self.operations
        columns.started_at.append(started_at)
        columns.ended_at.append(ended_at)
        columns.correlation.append(_first_integer(arguments.get("correlation"), default=-1))
        columns.device.append(_first_integer(arguments.get("device"), event.get("pid"), default=-1))
        columns.stream.append(_first_integer(arguments.get("stream"), event.get("tid"), default=-1))
        shape = f"{event.get('name')} {arguments.get('grid')} {arguments.get('block')}"
        columns.shape.append(self._shape_ids.setdefault(shape, len(self._shape_ids)))

    def _take_call(self, event: dict[str, Any], correlation: int) -> None:
        started_at = self._time(event, "ts")
        self.host_calls.correlation.append(correlation)
        self.host_calls.started_at.append(started_at)
        if GRAPH_LAUNCH.fullmatch(str(event.get("name"))):
            ended_at = self._interval(event)[1]
            self.launches.append(LaunchCall(correlation, started_at, ended_at, _thread(event)))

    def _interval(self, event: dict[str, Any]) -> tuple[int, int]:
        started_at, duration_ns = self._time(event, "ts"), self._time(event, "dur")
        if duration_ns < 0:
            raise self._malformed(f'"dur" is {event["dur"]}, a negative time')
        return started_at, started_at + duration_ns

    def _time(self, event: dict[str, Any], field: str) -> int:
        """A time in ns from a number or a string of microseconds."""
        value = event.get(field)
        try:
            microseconds = Decimal(value) if isinstance(value, str | int | Decimal) else None
        except InvalidOperation:
            microseconds = None
        if microseconds is None or not microseconds.is_finite() or isinstance(value, bool):
            raise self._malformed(f'"{field}" is {str(value)[:40]!r}, not a time in microseconds')
        # Compared, not computed with: 1e999999999 has no absolute value within decimal's bounds.
        if not -TIME_US_MAX < microseconds < TIME_US_MAX:
            raise self._malformed(f'"{field}" is {str(value)[:40]}, beyond any time in microseconds')
        return int((microseconds * 1000).to_integral_value())

    def _malformed(self, what: str) -> TraceMalformedError:
        return TraceMalformedError(f"{self.path}: event {self._event_number:,} {what}; nothing was imported")


def _thread(event: dict[str, Any]) -> tuple[str, str]:
    return str(event.get("pid")), str(event.get("tid"))


def _integer(value: Any) -> int | None:
    """An id, which some writers put in quotes."""
    if isinstance(value, str) and value.strip().isdecimal() and len(value) < 20:
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= INT64_MAX else None


def _first_integer(*values: Any, default: int) -> int:
    return next((number for number in map(_integer, values) if number is not None), default)
