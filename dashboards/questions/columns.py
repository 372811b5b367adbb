"""What kind of thing each column of an answer holds, so that a chart knows how to draw it."""

from typing import Any

import pandas as pd
from pandas.api import types


def times(rows: pd.DataFrame) -> list[str]:
    """Columns of instants."""
    return [str(name) for name in rows.columns if types.is_datetime64_any_dtype(rows[name])]


def figures(rows: pd.DataFrame) -> list[str]:
    """Columns of numbers."""
    return [
        str(name) for name in rows.columns if types.is_numeric_dtype(rows[name]) and not types.is_bool_dtype(rows[name])
    ]


def labels(rows: pd.DataFrame) -> list[str]:
    """Columns of names and verdicts."""
    neither = {*times(rows), *figures(rows)}
    return [str(name) for name in rows.columns if name not in neither and is_flat(rows[name])]


def is_flat(column: "pd.Series[Any]") -> bool:
    """Whether it holds one value a row, and no lists or maps."""
    return not any(isinstance(value, list | tuple | dict) for value in column)


def default_across(rows: pd.DataFrame) -> str:
    """What to draw along the horizontal axis: time where there is one, else a name, else a number."""
    found = [*times(rows), *labels(rows), *figures(rows)]
    return found[0] if found else ""


def default_up(rows: pd.DataFrame, across: str, units: dict[str, str] | None = None) -> str:
    """What to draw along the vertical axis: a figure with a unit, where there is one."""
    found = [name for name in figures(rows) if name != across]
    measured = [name for name in found if (units or {}).get(name)]
    return next(iter([*measured, *found]), "")
