"""Which arms there are to compare, and which two to begin with."""

from typing import Final

import pandas as pd

USUAL_ARMS: Final = ("before", "after")
USUAL_ROWS: Final = ("host", "package")


def arms_stored(engines: pd.DataFrame) -> list[str]:
    """Arms that any engine took part in, the one that was recorded first in front.

    Args:
        engines: Rows of the query `engines`.
    """
    if engines.empty:
        return []
    rows = engines[["arms", "first_seen"]].explode("arms")
    began = rows[rows.arms.notna() & (rows.arms != "")].groupby("arms").first_seen.min().reset_index()
    return [str(arm) for arm in began.sort_values(["first_seen", "arms"]).arms]


def usual_rows(engines: pd.DataFrame, arms: tuple[str, str]) -> tuple[str, ...]:
    """What makes a row of the table to begin with: host and package; not the package where that is what the arms differ in.

    A row for each package would compare nothing then. Hosts stay: what differs between hosts is left out by whoever means to.

    Args:
        engines: Rows of the query `engines`.
        arms: The two to compare.
    """
    if engines.empty:
        return USUAL_ROWS
    rows = engines[["arms", "engine_package"]].explode("arms")
    first, second = (set(rows.engine_package[rows.arms == arm]) for arm in arms)
    are_apart = bool(first and second) and first.isdisjoint(second)
    return tuple(label for label in USUAL_ROWS if label != "package" or not are_apart)


def usual_arms(stored: list[str]) -> tuple[str, str]:
    """The two arms to begin with: `before` and `after`, else the first that was recorded and the newest."""
    if set(USUAL_ARMS) <= set(stored) or len(stored) < len(USUAL_ARMS):
        return USUAL_ARMS
    return stored[0], stored[-1]
