"""What is known of the fleet, and how it is asked: two bounded queries, whose last good answers are kept."""

from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from queries.annotations.marks import Mark, mark_of
from queries.errors import QueriesError
from queries.runner import run
from queries.top.fleet import SLOT_S, Engine, engines_of

RANGES_S: Final = (600, 1800, 3600)
"""Times that are asked for, in s: a few, so that terminals of nearly the same width ask the same."""
SLOTS_MAX: Final = RANGES_S[-1] // SLOT_S
CELLS_MAX: Final = 20_000
"""Cells asked for at most, the newest."""
MARKS_MAX: Final = 50


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
    try:
        return answered(url, last_s)
    except QueriesError as wrong:
        return before._replace(problem=str(wrong))


def answered(url: str, last_s: int) -> Seen:
    """Ask.

    Raises:
        QueriesError: as `run`, of the cells; without the marks the rest is shown.
    """
    rows = run("live_cells", url, "rows", last_s=last_s, limit=CELLS_MAX)
    if rows and not any(row["judged_at"] for row in rows):
        # Nobody judges for this store, or has yet.
        rows = run("cells", url, "rows", last_s=last_s, limit=CELLS_MAX)
    known = Seen(tuple(engines_of(rows)), at=datetime.now(UTC), cut=len(rows) == CELLS_MAX)
    if known.newest is None:
        return known
    since = known.newest - timedelta(seconds=last_s)
    # Cells of a clock that was ahead, and long gone, lie in the future still.
    known = known._replace(engines=tuple(one for one in known.engines if one.newest.seen_at >= since))
    try:
        noted = run("annotations", url, "rows", limit=MARKS_MAX, **{"from": since, "to": "now"})
    except QueriesError as wrong:
        return known._replace(problem=f"the marks could not be read: {wrong}")
    return known._replace(marks=tuple(map(mark_of, noted)))
