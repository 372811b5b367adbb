"""What matters of a Kineto trace, in columns.

Times are integer nanoseconds, from the file's microseconds by decimal arithmetic: a double
cannot hold the nanosecond of a time in 2022. `displayTimeUnit` says how a viewer shows
times, not what they are in; they always are microseconds.
"""

from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, Final

from engine_hooks.adapters.kineto.reading import TraceReader
from engine_hooks.adapters.profiles.columns import GRAPH_LAUNCH, Annotation, LaunchCall, Place, Profile
from engine_hooks.adapters.profiles.errors import TraceMalformedError

DEVICE_CATEGORIES: Final = frozenset({"kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset"})
"""In lower case; the short ones are of Kineto before 2021."""
ANNOTATION_CATEGORY: Final = "user_annotation"
BASE_TIME: Final = "baseTimeNanoseconds"
TIME_US_MAX: Final = 2**62 // 1000
INT64_MAX: Final = 2**63 - 1


def kineto_profile(path: Path, on_progress: Callable[[int], None] = lambda _: None) -> Profile:
    """One trace file, read whole.

    Raises:
        TraceUnreadableError: see `TraceReader`.
        TraceMalformedError: an event that matters has no usable time; names the event, counted from 0.
    """
    reader = TraceReader(path, on_progress)
    profile = Profile(path, "kineto")
    columns = _Columns(profile)
    for number, event in enumerate(reader):
        columns.take(number, event)
    profile.shapes = list(columns.shape_ids)
    profile.content_digest = reader.content_digest
    profile.contents = f"{reader.event_count:,} events"
    _take_header(profile, reader.header)
    return profile


def _take_header(profile: Profile, header: Mapping[str, list[Any]]) -> None:
    base = _first(header, BASE_TIME)
    profile.base_time_ns = int(base) if base.isdecimal() else None
    profile.base_time_name = BASE_TIME
    profile.facts = {
        "trace_name": _first(header, "traceName"),
        "trace_id": _first(header, "trace_id"),
        "trace_base_time_ns": base,
        "distributed_rank": _first(header, "distributedInfo.rank"),
        "distributed_world_size": _first(header, "distributedInfo.world_size"),
        "distributed_backend": _first(header, "distributedInfo.backend"),
    }
    for device in set(profile.operations.place):
        facts = {"gpu_name": _gpu_name(header, device)}
        profile.places[device] = Place(device, f"gpu{device}", str(device), facts)


def _gpu_name(header: Mapping[str, list[Any]], device: int) -> str:
    """The device's own name; where its number is not listed (ROCm counts agents), the one name that all share."""
    names = header.get("deviceProperties.item.name", [])
    by_id = dict(zip(header.get("deviceProperties.item.id", []), names, strict=False))
    shared = {str(name) for name in names}
    return str(by_id.get(device, shared.pop() if len(shared) == 1 else ""))


def _first(header: Mapping[str, list[Any]], prefix: str) -> str:
    values = header.get(prefix)
    return "" if not values or values[0] is None else str(values[0])


class _Columns:
    """Fills a profile's columns, event by event."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._event_number = -1
        self.shape_ids: dict[str, int] = {}

    def take(self, number: int, event: Any) -> None:
        self._event_number = number
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
            self._profile.annotations.setdefault(_thread(event), []).append(
                Annotation(started_at, ended_at, str(event.get("name", "")))
            )
        elif (correlation := _integer(arguments.get("correlation"))) is not None:
            self._take_call(event, correlation)

    def _take_operation(self, event: dict[str, Any], arguments: dict[str, Any]) -> None:
        started_at, ended_at = self._interval(event)
        shape = f"{event.get('name')} {arguments.get('grid')} {arguments.get('block')}"
        self._profile.operations.append(
            started_at,
            ended_at,
            _integer(arguments.get("correlation")),
            place=_first_integer(arguments.get("device"), event.get("pid"), default=-1),
            stream=_first_integer(arguments.get("stream"), event.get("tid"), default=-1),
            shape=self.shape_ids.setdefault(shape, len(self.shape_ids)),
        )

    def _take_call(self, event: dict[str, Any], correlation: int) -> None:
        started_at = self._time(event, "ts")
        self._profile.host_calls.correlation.append(correlation)
        self._profile.host_calls.started_at.append(started_at)
        if GRAPH_LAUNCH.fullmatch(str(event.get("name"))):
            ended_at = self._interval(event)[1]
            self._profile.launches.append(LaunchCall(correlation, started_at, ended_at, _thread(event)))

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
        return TraceMalformedError(f"{self._profile.path}: event {self._event_number:,} {what}; nothing was imported")


def _thread(event: dict[str, Any]) -> tuple[str, str]:
    return str(event.get("pid")), str(event.get("tid"))


def _integer(value: Any) -> int | None:
    """An id, which some writers put in quotes."""
    if isinstance(value, str) and value.strip().isdecimal() and len(value) < 20:
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= INT64_MAX else None


def _first_integer(*values: Any, default: int) -> int:
    return next((number for number in map(_integer, values) if number is not None), default)
