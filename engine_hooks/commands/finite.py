"""Options that are numbers: a range without an upper end lets infinity through, and some let nan."""

from collections.abc import Sequence
from math import isfinite
from typing import TypeVar

import typer

Given = TypeVar("Given", bound=float | Sequence[float] | None)


def finite(given: Given) -> Given:
    """The same; for typer's `callback`.

    Raises:
        typer.BadParameter: infinity or nan, also `1e400`, which is read as infinity.
    """
    numbers = given if isinstance(given, Sequence) else [given]
    for number in numbers:
        if number is not None and not isfinite(number):
            raise typer.BadParameter(f"{number} is no number")
    return given
