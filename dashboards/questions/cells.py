"""What a page asks about a cell, and whether there is more to come."""

from datetime import UTC, datetime, timedelta

import pandas as pd

from engine_hooks.contract.names import CELL_WINDOW_NS

EXECUTIONS_MAX = 10_000
"""Executions drawn; a longer cell is cut, and the page says so."""
CANDIDATES_MAX = 8 * EXECUTIONS_MAX
RUNNING = timedelta(seconds=60)
"""A cell whose last execution completed within this time may still be running: on a busy machine the newest ones are
stored half a minute late, and a page that stopped looking would show the cell's beginning for ever."""
WINDOW_S = CELL_WINDOW_NS // 1_000_000_000
UNIX_SECONDS_DIGITS = 10
"""Digits of Unix seconds since 2001; fewer may be a benchmark's own number."""


def is_running(cells: pd.DataFrame) -> bool:
    """Whether more executions are to be expected."""
    return not cells.empty and bool(cells.ended_at.max() > datetime.now(UTC) - RUNNING)


def window(cell: str) -> dict[str, str]:
    """The time bounds of a cell that is named by the start of its window, so that ClickHouse reads no more; else none."""
    if not (cell.isdigit() and len(cell) == UNIX_SECONDS_DIGITS and int(cell) % WINDOW_S == 0):
        return {}
    begin = datetime.fromtimestamp(int(cell), UTC)
    return {"from_": begin.isoformat(), "to": (begin + timedelta(seconds=WINDOW_S)).isoformat()}


def bounds(cells: pd.DataFrame) -> dict[str, str]:
    """The time bounds of a cell that is known, in whole seconds; without an end while it runs.

    They stay the same from one refresh to the next, so that viewers and refreshes share answers.
    """
    begin = cells.started_at.min().floor("s").isoformat()
    if is_running(cells):
        return {"from_": begin}
    return {"from_": begin, "to": (cells.ended_at.max().floor("s") + timedelta(seconds=1)).isoformat()}


def around(submitted: pd.Timestamp) -> dict[str, str]:
    """The time bounds of one execution, in whole microseconds."""
    begin = submitted.floor("us")
    return {"from_": begin.isoformat(), "to": (begin + timedelta(microseconds=1)).isoformat()}
