"""Which arms there are to compare, and which two to begin with."""

from typing import Final

import pandas as pd

USUAL_ARMS: Final = ("before", "after")


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


def usual_arms(stored: list[str]) -> tuple[str, str]:
    """The two arms to begin with: `before` and `after`, else the first that was recorded and the newest."""
    if set(USUAL_ARMS) <= set(stored) or len(stored) < len(USUAL_ARMS):
        return USUAL_ARMS
    return stored[0], stored[-1]
