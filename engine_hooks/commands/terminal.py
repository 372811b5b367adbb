"""The terminal of every command: one way of making a console, and of printing a table so that nothing of it is cut."""

import os
import re
from typing import Final

from rich.console import Console
from rich.table import Table

WIDTH_ELSEWHERE: Final = 10_000
"""Columns of characters where there is no terminal: a file or a pipe takes any line."""

NAME_SHOWN_MAX: Final = 256
"""Characters of a name that a terminal shows: no host and no pod has a longer one, and one sender's 5,000 would fold
every table that names it into a hundred lines."""
TEXT_SHOWN_MAX: Final = 1000
"""Characters of a text."""
_OVERLONG: Final = re.compile(rf"(\S{{{NAME_SHOWN_MAX - 1}}})\S{{2,}}")


def output_console() -> Console:
    """Standard output; as wide as need be where it is no terminal, unless `COLUMNS` says how wide."""
    console = Console()
    return console if console.is_terminal or "COLUMNS" in os.environ else Console(width=WIDTH_ELSEWHERE)


def folding(table: Table) -> Table:
    """The same table, whose texts go on in the next line where a terminal is too narrow: a name that is cut is none."""
    for column in table.columns:
        column.overflow, column.no_wrap = "fold", False
    return table


def shortened(text: str) -> str:
    """A text for the terminal, in which overlong names, and itself, end by `…`. What scripts read keeps them whole."""
    names = _OVERLONG.sub(r"\1…", text)
    return names if len(names) <= TEXT_SHOWN_MAX else f"{names[: TEXT_SHOWN_MAX - 1]}…"


def print_table(table: Table) -> None:
    """On standard output."""
    output_console().print(folding(table))
