"""Values of parameters as the server is to bind them."""

import difflib
import functools
import math
import re
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta

from queries.catalogue import Parameter, Query
from queries.errors import ParameterError

AGO = re.compile(r"-(?P<amount>\d+(?:\.\d+)?)(?P<unit>s|m|h|d)")
INSTANT = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.(?P<fraction>\d{1,9}))?)?(?:Z|[+-]\d\d:\d\d)?)?")
WHOLE = re.compile(r"(?P<unsigned>U?)Int(?P<bits>\d+)")
UNIT_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
EARLIEST, LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)
STORED_AHEAD_MAX = timedelta(days=1)
"""So far ahead something may be stored, by clocks and time zones that differ."""
A_TIME = "a time is wanted, like 2026-11-30T07:00 (UTC, or with +02:00), now, or -30m for half an hour ago (s, m, h, d)"


def instant(value: object, now: Callable[[], float] = time.time) -> str:
    """An instant as ClickHouse reads it in any time zone setting: UTC, nanoseconds kept.

    Args:
        value: A datetime (UTC where it names no zone), ISO 8601 text, `now`, or `-15m` for that long ago
            (s, m, h, d).
        now: Unix time, in s.

    Raises:
        ValueError: anything else.
    """
    if isinstance(value, datetime):
        return rendered(value)
    text = str(value).strip()
    if text == "now":
        return rendered(datetime.fromtimestamp(now(), UTC))
    if ago := AGO.fullmatch(text):
        return rendered(before(datetime.fromtimestamp(now(), UTC), float(ago["amount"]) * UNIT_SECONDS[ago["unit"]]))
    found = INSTANT.fullmatch(text)
    if not found:
        raise ValueError(A_TIME)
    try:
        when = datetime.fromisoformat(text)
    except ValueError as wrong:  # A thirteenth month.
        raise ValueError(A_TIME) from wrong
    return rendered(when, found["fraction"])


def begun(option: str, text: str | None, now: Callable[[], float] = time.time) -> str | None:
    """The beginning of a time that is asked about, as it was given.

    Args:
        option: What it is called where it was given.
        text: As `instant` takes it; None is the beginning that the question has by itself.
        now: Unix time, in s.

    Raises:
        ParameterError: it is no instant, or lies so far ahead that nothing can have happened since.
    """
    try:
        at = None if text is None else datetime.fromisoformat(f"{instant(text, now)[:26]}+00:00")
    except ValueError as wrong:
        raise ParameterError(f"{option} is {text!r}: {wrong}") from wrong
    if at and at > datetime.fromtimestamp(now(), UTC) + STORED_AHEAD_MAX:
        raise ParameterError(f"{option} {text} is more than a day ahead: name an instant up to now (UTC)")
    return text


def before(moment: datetime, seconds: float) -> datetime:
    """So long before; the beginning of time where the calendar does not go back so far."""
    try:
        return moment - timedelta(seconds=seconds)
    except OverflowError:
        return datetime.min.replace(tzinfo=UTC)


def rendered(value: datetime, fraction: str | None = None) -> str:
    """UTC text within what a DateTime64(9) holds."""
    aware = value.replace(tzinfo=UTC) if value.tzinfo is None else value
    if not EARLIEST <= aware <= LATEST:
        raise ValueError("a time between 1970 and 2200 is wanted")
    aware = aware.astimezone(UTC)
    return f"{aware:%Y-%m-%d %H:%M:%S}.{(fraction or f'{aware.microsecond:06}').ljust(9, '0')}"


def whole(value: object, least: int, most: int) -> str:
    """A whole number, from the least to the most that its type holds."""
    wanted = f"a whole number is wanted, {least:,} to {most:,}"
    try:
        number = int(str(value))
    except ValueError as wrong:
        raise ValueError(wanted) from wrong
    if not least <= number <= most:
        raise ValueError(wanted)
    return str(number)


def real(value: object) -> str:
    """A number, with decimals or without."""
    try:
        number = float(str(value))
    except ValueError as wrong:
        raise ValueError("a number is wanted, like 0.3") from wrong
    if not math.isfinite(number):
        raise ValueError("a number is wanted, like 0.3")
    return repr(number)


def truth(value: object) -> str:
    """`true` or `false`."""
    text = str(value).lower()
    if text not in ("true", "false", "1", "0"):
        raise ValueError("true or false is wanted")
    return "true" if text in ("true", "1") else "false"


def converter(type_: str) -> Callable[[object], str]:
    """How to write values of a ClickHouse type."""
    if type_.startswith("DateTime64"):
        return instant
    if found := WHOLE.fullmatch(type_):
        bits = int(found["bits"])
        least, most = (0, 2**bits - 1) if found["unsigned"] else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        return functools.partial(whole, least=least, most=most)
    return {"Bool": truth, "Float64": real}.get(type_, str)


def bound(query: Query, values: Mapping[str, object]) -> dict[str, str]:
    """Every parameter of a query with its value, or its default where none or `None` is given.

    Raises:
        ParameterError: an unknown parameter, a value that does not fit, or a time that ends before it begins.
    """
    known = {parameter.name: parameter for parameter in query.parameters}
    for name in values:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {close[0]}?" if close else f"it has {', '.join(known)}"
            raise ParameterError(f"query {query.name} has no parameter {name!r}: {hint}")
    given = {name: value for name, value in values.items() if value is not None}
    texts = {name: written(parameter, given.get(name, parameter.default)) for name, parameter in known.items()}
    # Of one end only, the other is the query's: a time in which nothing is yet is no mistake.
    if {"from", "to"} <= given.keys() and texts["from"] >= texts["to"]:
        raise ParameterError(
            f"from is {texts['from'][:19]} and to is {texts['to'][:19]} (UTC): give the earlier one as from"
        )
    return texts


def written(parameter: Parameter, value: object) -> str:
    """One value as text for the server."""
    try:
        return converter(parameter.type)(value)
    except ValueError as wrong:
        raise ParameterError(f"parameter {parameter.name} is {value!r}: {wrong}") from wrong
