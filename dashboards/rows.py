"""Rows of answers, one by one."""

from collections.abc import Iterator
from typing import Any, TypeAlias

import pandas as pd

Row: TypeAlias = Any
"""One row, its columns as attributes; pandas gives them no types."""


def rows_of(frame: pd.DataFrame) -> Iterator[Row]:
    """The rows in their order."""
    yield from frame.itertuples(index=False)


def first_row(frame: pd.DataFrame) -> Row | None:
    """The first row, if there is one."""
    return next(rows_of(frame), None)
