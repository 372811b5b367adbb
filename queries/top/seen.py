"""What is known of the fleet, and how it is asked: two bounded queries, whose last good answers are kept."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

from queries.annotations.marks import Mark, mark_of
from queries.errors import QueriesError
from queries.runner import Rows, run
from queries.top.fleet import SLOT_S, Engine, engines_of, in_utc

RANGES_S: Final = (600, 1800, 3600)
"""Times that are asked for, in s: a few, so that terminals of nearly the same width ask the same."""
SLOTS_MAX: Final = RANGES_S[-1] // SLOT_S
CELLS_MAX: Final = 20_000
"""Cells asked for at most, the newest."""
MARKS_MAX: Final = 50
FRESH: Final = timedelta(minutes=1)
"""What was answered longer ago tells nobody what to ask for now."""


class Seen(NamedTuple):
    """The fleet as it was last answered."""

    engines: tuple[Engine, ...] = ()
    marks: tuple[Mark, ...] = ()
    """The latest first."""
    at: datetime | None = None
    """When it was answered, by the clock here; None before the first answer."""
    problem: str = ""
    """Why the last question was not answered; '' where it was."""
    cut: bool = False
    """Whether there are more cells than were asked for."""

    @property
    def newest(self) -> datetime | None:
        """The last observed completion, by its engine's clock or its arrival, whichever is earlier."""
        return max((one.newest.seen_at for one in self.engines), default=None)


def range_for(slots: int) -> int:
    """How much time to ask for, in s, so that so many slots can be filled."""
    return next((one for one in RANGES_S if one >= slots * SLOT_S), RANGES_S[-1])


def look(url: str, last_s: int, before: Seen) -> Seen:
    """Ask again. A failure keeps what is known, and says why.

    Args:
        url: ClickHouse.
        last_s: How far back from the newest stored execution, in s.
        before: What is known.
    """
    is_fresh = before.at is not None and datetime.now(UTC) - before.at < FRESH
    try:
        return answered(url, last_s, before.newest if is_fresh else None)
    except QueriesError as wrong:
        return before._replace(problem=str(wrong))


def answered(url: str, last_s: int, newest: datetime | None = None) -> Seen:
    """Ask.

    Args:
        url: ClickHouse.
        last_s: How far back from the newest stored execution, in s.
        newest: That, as it was a moment ago, where it is known. To look for it costs a quarter of the answer.

    Raises:
        QueriesError: as `run`, of the cells; without the marks the rest is shown.
    """
    rows = _cells(url, {"last_s": last_s} if newest is None else {"from": newest - timedelta(seconds=last_s)})
    last = max(map(_seen_at, rows), default=None)
    if newest is not None and (last is None or last < newest):
        # It is gone: another store, or a part of this one was dropped.
        return answered(url, last_s)
    if last is None:
        return Seen(at=datetime.now(UTC))
    since = last - timedelta(seconds=last_s)
    engines = engines_of(row for row in rows if in_utc(row["ended_at"]) >= since)
    # Cells of a clock that was ahead, and long gone, lie in the future still.
    engines = [one for one in engines if one.newest.seen_at >= since]
    known = Seen(tuple(engines), at=datetime.now(UTC), cut=len(rows) == CELLS_MAX)
    try:
        noted = run("annotations", url, "rows", limit=MARKS_MAX, **{"from": since, "to": "now"})
    except QueriesError as wrong:
        return known._replace(problem=f"the marks could not be read: {wrong}")
    return known._replace(marks=tuple(map(mark_of, noted)))


def _cells(url: str, when: Mapping[str, object]) -> Rows:
    """The cells of a time."""
    rows = run("live_cells", url, "rows", limit=CELLS_MAX, **when)
    if rows and not any(row["judged_at"] for row in rows):
        # Nobody judges for this store, or has yet.
        rows = run("cells", url, "rows", limit=CELLS_MAX, **when)
    return rows


def _seen_at(row: Mapping[str, Any]) -> datetime:
    """When a cell was last heard of, as `Cell.seen_at` has it."""
    return min(in_utc(row["ended_at"]), in_utc(row["last_received_at"]))
