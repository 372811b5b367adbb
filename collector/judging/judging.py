"""Judging cells once, when their executions are there, so that live pages need not: `judge_cells.sql` has how.
Beside it is settled what each graph took on the GPU, by hours (`settle_hours.sql`), and how each engine fared, by half hours
(`settle_half_hours.sql`).

Why here and not in each question: docs/decisions/0020-live-queries.md
"""

import time
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from importlib.resources import files
from typing import Any, Final, NamedTuple

from clickhouse_connect.driver.client import Client

from collector.repeated_look import RepeatedLook
from collector.store.client import StoreClient

JUDGE_EVERY_S: Final = 10.0
"""How often to look for cells to judge: about as long as a verdict may lag behind what is stored."""
RECENT_S: Final = 900
"""Cells that executions arrived for within this are looked at, each time. Longer than the 600 s after which a cell is judged
once more."""
ALL_EVERY_S: Final = 600.0
"""How often, and at the start, the cells of `ALL_S` are looked at: what waited in a spool arrived long before it was stored."""
ALL_S: Final = 2 * 86_400
WALK_EVERY_S: Final = 60.0
"""How often at most, while executions arrive, cells of days before `ALL_S` are judged: a restored backup, what arrived while
nobody judged. Where none do, every look judges some."""
SETTLE_EVERY_S: Final = 60
"""How often at most an hour is settled anew: an hour of a busy engine is some hundreds of sketches to add up."""
STRETCHES_AT_ONCE: Final = 12
"""Stretches of ten minutes that a look finds."""
CELLS_AT_ONCE: Final = 500
SPAN_AT_ONCE: Final = timedelta(hours=1)
"""Stretches within this, of no more than `CELLS_AT_ONCE` cells together, are judged by one statement: to plan it takes half a
second of CPU time, whatever it judges, and a cell of a small engine next to nothing."""
STATEMENTS_AT_ONCE: Final = 2
"""Before looking again: the present, and one more, so that neither an import nor a clock that is ahead holds it up."""
SHARE_MAX: Final = 0.05
"""Of the time, at most so much is spent on judging: of CPU time, where that can be told."""
STOP_WITHIN_S: Final = 10.0
"""A statement under way may take so long to end."""
DAY: Final = timedelta(days=1)
HALF_HOUR: Final = timedelta(minutes=30)
HISTORY: Final = timedelta(seconds=600)
"""As far after a cell, what its graphs cost is looked for."""
LAST: Final = datetime(2262, 4, 11, 23, 47, 16)  # noqa: DTZ001 -- of the zone that it is compared in
"""No column holds a later instant: a clock near it must not stop all judging."""
_DAY_BEFORE: Final = """
SELECT max(received_on) AS latest, count() > 0 AS is_there
FROM cell_windows
WHERE received_on < {day:Date} AND received_on >= (SELECT toDate(min(received_at)) FROM graph_executions HAVING count() > 0)
"""
_SETTINGS: Final[dict[str, Any]] = {
    "max_threads": 1,
    "max_memory_usage": 1024**3,
    "deduplicate_insert": "enable",
    "async_insert": 0,
    "insert_deduplicate": 1,
}


class Stretch(NamedTuple):
    """Cells that wait to be judged."""

    first: datetime
    """The first submission of all of them."""
    last: datetime
    """The last one."""
    cells: int


def judge_cells(client: Client, recent_s: int = RECENT_S, stretches: int = STRETCHES_AT_ONCE) -> int:
    """Judge the cells of so many stretches that need it, and return how many stretches those were.

    Args:
        client: The store's.
        recent_s: Of the cells that executions arrived for within this, in s.
        stretches: Stretches of ten minutes at most, what is live first.

    Raises:
        ClickHouseError: as it comes; cells that are not judged are found again.
    """
    found = _waiting(client, recent_s, stretches)
    for stretch in judged_together(found):
        _judge(client, stretch)
    return len(found)


def judged_together(found: Sequence[Stretch]) -> list[Stretch]:
    """Those that one statement judges, put together.

    Args:
        found: Those that are judged first, first.
    """
    put: list[Stretch] = []
    for one in found:
        both = (
            Stretch(min(put[-1].first, one.first), max(put[-1].last, one.last), put[-1].cells + one.cells)
            if put
            else one
        )
        if put and both.cells <= CELLS_AT_ONCE and both.last - both.first <= SPAN_AT_ONCE:
            put[-1] = both
        else:
            put.append(one)
    return put


def _waiting(client: Client, recent_s: int, stretches: int) -> list[Stretch]:
    return _stretches(client, "unjudged_cells", recent_s=recent_s, stretches=stretches)


def _stretches(client: Client, statement: str, **parameters: object) -> list[Stretch]:
    return [Stretch(*row) for row in client.query(_statement(statement), parameters=parameters).result_rows]


def _judge(client: Client, stretch: Stretch) -> None:
    _command(client, "judge_cells", stretch.first, stretch.last + HISTORY)
    settle_hours(client, stretch.first, stretch.last)


def settle_hours(client: Client, first: datetime, last: datetime, every_s: int = SETTLE_EVERY_S) -> None:
    """Settle what each graph took on the GPU in the hours between two instants, and how each engine fared in the half hours
    that have ended, where executions came since it was.

    Args:
        client: The store's.
        first: In the first of these hours, or half an hour after that began.
        last: In the last.
        every_s: What was settled within this is left alone, in s.

    Raises:
        ClickHouseError: as it comes; what is not settled is found again.
    """
    _command(client, "settle_hours", first, last, every_s=every_s)
    # The one before may have ended while the look before this one was under way.
    _command(client, "settle_half_hours", first - HALF_HOUR, last, every_s=every_s)


def _command(client: Client, statement: str, first: datetime, last: datetime, **further: int) -> None:
    bounds = further | {
        "from": _text(first - timedelta(microseconds=1)),
        "to": _text(min(last, LAST.replace(tzinfo=last.tzinfo))),
    }
    settings = {name: value for name, value in _SETTINGS.items() if name in client.server_settings}
    client.command(_statement(statement), parameters=bounds, settings=settings)


class OlderDays:
    """One walk back over the days that stored executions arrived on, from where a look at `ALL_S` ends, for cells to judge.
    What cannot be judged is passed by: the walk comes to its end whatever it finds."""

    def __init__(self) -> None:
        self.is_over = False
        self._day: date | None = None
        self._before = LAST

    def next(self, client: Client) -> Stretch | None:
        """Cells that wait, for one statement; None where this step finds none.

        Raises:
            ClickHouseError: as it comes; the next step is the same.
        """
        day = self._day or self._day_before(client, (datetime.now(UTC) - timedelta(seconds=ALL_S)).date() + DAY)
        if day is None:
            self.is_over = True
            return None
        found = _stretches(
            client, "older_unjudged_cells", day=day, before=_text(self._before), stretches=STRETCHES_AT_ONCE
        )
        if found:
            latest = judged_together(found)[0]
            self._day, self._before = day, latest.first
            return latest
        self._day, self._before = self._day_before(client, day), LAST
        self.is_over = self._day is None
        return None

    @staticmethod
    def _day_before(client: Client, day: date) -> date | None:
        rows = client.query(_DAY_BEFORE, parameters={"day": day}).result_rows
        return rows[0][0] if rows[0][1] else None


class CellJudge(RepeatedLook):
    """A thread that judges what arrives.

    Args:
        store: A client for it alone.
        every_s: How often to look, in s.
        clock: Monotonic, in s.
        work_clock: CPU time in s of the process that the store is in; None where that is another one.
    """

    def __init__(
        self,
        store: StoreClient,
        every_s: float = JUDGE_EVERY_S,
        clock: Callable[[], float] = time.monotonic,
        work_clock: Callable[[], float] | None = None,
    ) -> None:
        super().__init__(
            "judging",
            "cells not judged",
            every_s,
            share_max=SHARE_MAX,
            ends_within_s=STOP_WITHIN_S,
            clock=clock,
            work_clock=work_clock,
        )
        self._store = store
        self._all_at = self._walked_at = float("-inf")
        self._older = OlderDays()

    def see_to_it(self) -> None:
        with self._store.using() as client:
            self.look(client)

    def look(self, client: Client) -> int:
        """Judge what needs it now, and return how many statements that took."""
        looks_at_all = self._clock() - self._all_at > ALL_EVERY_S
        found = _waiting(client, ALL_S if looks_at_all else RECENT_S, STRETCHES_AT_ONCE)
        together = judged_together(found)
        for stretch in together[:STATEMENTS_AT_ONCE]:
            _judge(client, stretch)
        judged = min(len(together), STATEMENTS_AT_ONCE)
        # More may be waiting than one look takes: only then is everything looked at again, next time.
        if len(found) == STRETCHES_AT_ONCE or len(together) > STATEMENTS_AT_ONCE:
            return judged
        if looks_at_all:
            self._all_at = self._clock()
        return judged + self._walk_back(client, is_idle=not found)

    def _walk_back(self, client: Client, *, is_idle: bool) -> int:
        """Judge some of what is older, where nothing else waits, and return how many statements that took."""
        if self._older.is_over or not (is_idle or self._clock() - self._walked_at >= WALK_EVERY_S):
            return 0
        self._walked_at = self._clock()
        older = self._older.next(client)
        if older is None:
            return 0
        _judge(client, older)
        return 1


def _statement(name: str) -> str:
    return files("collector.judging").joinpath(f"{name}.sql").read_text("utf-8")


def _text(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M:%S.%f")
