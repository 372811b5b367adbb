"""Judging cells once, when their executions are there, so that live pages need not: `judge_cells.sql` has how.
What each graph took on the GPU is settled beside it, by hours: `settle_hours.sql`.

Why here and not in each question: docs/decisions/0020-live-queries.md
"""

import time
from collections.abc import Callable
from datetime import datetime, timedelta
from importlib.resources import files
from typing import Any, Final

from clickhouse_connect.driver.client import Client

from collector.repeated_look import RepeatedLook
from collector.store_client import StoreClient

JUDGE_EVERY_S: Final = 10.0
"""How often to look for cells to judge: about as long as a verdict may lag behind what is stored."""
RECENT_S: Final = 900
"""Cells that executions arrived for within this are looked at, each time. Longer than the 600 s after which a cell is judged
once more."""
ALL_EVERY_S: Final = 600.0
"""How often, and at the start, the cells of `ALL_S` are looked at: what waited in a spool arrived long before it was stored."""
ALL_S: Final = 2 * 86_400
SETTLE_EVERY_S: Final = 60
"""How often at most an hour is settled anew: an hour of a busy engine is some hundreds of sketches to add up."""
STRETCHES_AT_ONCE: Final = 6
"""Stretches of ten minutes that are judged before looking again, the latest first: an import does not hold up what is live."""
SHARE_MAX: Final = 0.05
"""Of the time, at most so much is spent on judging."""
STOP_WITHIN_S: Final = 10.0
"""A statement under way may take so long to end."""
HISTORY: Final = timedelta(seconds=600)
"""As far after a cell, what its graphs cost is looked for."""
LAST: Final = datetime(2262, 4, 11, 23, 47, 16)  # noqa: DTZ001 -- of the zone that it is compared in
"""No column holds a later instant: a clock near it must not stop all judging."""
_SETTINGS: Final[dict[str, Any]] = {
    "max_threads": 1,
    "max_memory_usage": 1024**3,
    "deduplicate_insert": "enable",
    "async_insert": 0,
    "insert_deduplicate": 1,
}


def judge_cells(client: Client, recent_s: int = RECENT_S, stretches: int = STRETCHES_AT_ONCE) -> int:
    """Judge the cells of so many stretches that need it, and return how many stretches those were.

    Args:
        client: The store's.
        recent_s: Of the cells that executions arrived for within this, in s.
        stretches: Stretches of ten minutes at most, the latest first.

    Raises:
        ClickHouseError: as it comes; cells that are not judged are found again.
    """
    found = client.query(_statement("unjudged_cells"), parameters={"recent_s": recent_s, "stretches": stretches})
    rows: list[tuple[datetime, datetime]] = [(first, last) for first, last in found.result_rows]
    for first, last in rows:
        _command(client, "judge_cells", first, last + HISTORY)
        settle_hours(client, first, last)
    return len(rows)


def settle_hours(client: Client, first: datetime, last: datetime, every_s: int = SETTLE_EVERY_S) -> None:
    """Settle what each graph took on the GPU in the hours between two instants, where executions came since it was.

    Args:
        client: The store's.
        first: In the first of these hours.
        last: In the last.
        every_s: What was settled within this is left alone, in s.

    Raises:
        ClickHouseError: as it comes; what is not settled is found again.
    """
    _command(client, "settle_hours", first, last, every_s=every_s)


def _command(client: Client, statement: str, first: datetime, last: datetime, **further: int) -> None:
    bounds = further | {
        "from": _text(first - timedelta(microseconds=1)),
        "to": _text(min(last, LAST.replace(tzinfo=last.tzinfo))),
    }
    settings = {name: value for name, value in _SETTINGS.items() if name in client.server_settings}
    client.command(_statement(statement), parameters=bounds, settings=settings)


class CellJudge(RepeatedLook):
    """A thread that judges what arrives.

    Args:
        store: A client for it alone.
        every_s: How often to look, in s.
        clock: Monotonic, in s.
    """

    def __init__(
        self, store: StoreClient, every_s: float = JUDGE_EVERY_S, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(
            "judging", "cells not judged", every_s, share_max=SHARE_MAX, ends_within_s=STOP_WITHIN_S, clock=clock
        )
        self._store = store
        self._all_at = float("-inf")

    def see_to_it(self) -> None:
        with self._store.using() as client:
            self.look(client)

    def look(self, client: Client) -> int:
        """Judge what needs it now, and return how many stretches were judged."""
        looks_at_all = self._clock() - self._all_at > ALL_EVERY_S
        judged = judge_cells(client, ALL_S if looks_at_all else RECENT_S)
        # More may be waiting than one look takes: only then is everything looked at again, next time.
        if looks_at_all and judged < STRETCHES_AT_ONCE:
            self._all_at = self._clock()
        return judged


def _statement(name: str) -> str:
    return files("collector").joinpath(f"{name}.sql").read_text("utf-8")


def _text(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M:%S.%f")
