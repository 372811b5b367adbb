"""Tables as Markdown: real table cells and links, so that keyboards and screen readers find them."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Column(NamedTuple):
    """The head of a column."""

    title: str
    is_figure: bool = False
    """Set flush right, so that digits stand below each other."""


def table(columns: Sequence[Column], rows: Iterable[Sequence[str]]) -> str:
    """A table; what stands in its cells is Markdown already."""
    lines = [
        [column.title for column in columns],
        ["--:" if column.is_figure else ":--" for column in columns],
        *rows,
    ]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
