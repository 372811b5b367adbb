"""Sentences of the pages: pure functions from rows to plain English, so that tests need no browser.

Rows are those of the query catalogue; text that comes from engines is escaped before it meets Markdown.
"""

import re
from datetime import UTC, datetime, timedelta, tzinfo

import pandas as pd

from dashboards.rows import Row

SHORT_LETTERS = 12
NAME_LETTERS_MAX = 40
"""Of a longer name the middle is left out: machines differ at its ends. A UUID has 36."""
MARKDOWN = re.compile(r"([\\`*_{}\[\]<>()#+!|~$:])")


def escaped(text: object) -> str:
    """Text that Markdown shows as it stands."""
    return MARKDOWN.sub(r"\\\1", str(text))


def with_code(problem: str) -> str:
    """What is wrong, as Markdown that shows it as it stands, save that what to type, between backticks, is set as code."""
    parts = problem.split("`")
    if len(parts) % 2 == 0:
        return escaped(problem)
    return "".join(f"`{part}`" if at % 2 and part else escaped(part) for at, part in enumerate(parts))


def two_ends(name: str, letters_max: int = NAME_LETTERS_MAX) -> str:
    """A name in one line, of one of more than `letters_max` its two ends."""
    in_line = " ".join(name.split())
    half = (letters_max - 1) // 2
    return in_line if len(in_line) <= letters_max else f"{in_line[:half]}…{in_line[-half:]}"


def engine_names(row: Row) -> list[str]:
    """What a person names an engine by: host, package, recipe; its instance where it has none of them."""
    parts = [row.host_name, row.engine_package, row.engine_recipe]
    return [str(part) for part in parts if part] or [str(row.service_instance_id)]


def engine_label(row: Row) -> str:
    """An engine as a person names it: host, package, recipe."""
    return " · ".join(engine_names(row))


def short_instance(row: Row) -> str:
    """What tells the runs on one host apart: the id without the host's name, of a long one its end."""
    return short_of(str(row.service_instance_id), str(row.host_name))


def short_of(instance: str, host_name: str) -> str:
    """The same of an id and its host's name; '' where there is none."""
    rest = instance.removeprefix(host_name).lstrip("-_.:/ ") or instance
    return rest if len(rest) <= SHORT_LETTERS else f"…{rest[-8:]}"


def clock(instant: datetime, zone: tzinfo, today: datetime) -> str:
    """A time of day in the viewer's zone, with the date where it is not today's; in UTC where the zone's calendar has none."""
    # A timestamp of pandas ends in 2262, and engines' clocks may say its last hour: east of UTC that lies beyond it.
    moment = instant.to_pydatetime(warn=False) if isinstance(instant, pd.Timestamp) else instant
    try:
        local = moment.astimezone(zone)
    except OverflowError:  # A silence for ever is one until 9999.
        return f"{moment.astimezone(UTC).isoformat(' ', 'seconds')[:19]} UTC"
    same_day = local.date() == today.astimezone(zone).date()
    return f"{local:%H:%M:%S}" if same_day else f"{local:%Y-%m-%d %H:%M:%S}"


def span_words(since: datetime | None, until: datetime | None, zone: tzinfo, today: datetime) -> str:
    """`from … to …`, in the viewer's zone: with the date at both ends, unless both are of today."""
    dated = [f"{end.astimezone(zone):%Y-%m-%d}" for end in (since, until) if end is not None]
    is_today = all(date == f"{today.astimezone(zone):%Y-%m-%d}" for date in dated)
    form = "%H:%M:%S" if is_today else "%Y-%m-%d %H:%M:%S"
    begin = "" if since is None else f"from {since.astimezone(zone):{form}} "
    return f"{begin}on" if until is None else f"{begin}to {until.astimezone(zone):{form}}"


def age(span: timedelta) -> str:
    """How long, in the two largest units that tell something."""
    seconds = max(0, round(span.total_seconds()))
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60} s"
    if seconds < 86400:
        return f"{seconds // 3600} h {seconds % 3600 // 60} min"
    return f"{seconds // 86400} d {seconds % 86400 // 3600} h"


def percent(fraction: float) -> str:
    """A share without false precision."""
    return f"{100 * fraction:.0f} %"


def utc_text(instant: pd.Timestamp) -> str:
    """An instant in UTC, to the millisecond, for hovering."""
    return f"{instant.tz_convert(UTC):%Y-%m-%d %H:%M:%S.%f}"[:-3] + " UTC"
