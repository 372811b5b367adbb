"""The terminal of every command: one way of making a console, and of printing a table so that nothing of it is cut."""

import os
from typing import Final

from rich.console import Console
from rich.table import Table

WIDTH_ELSEWHERE: Final = 10_000
"""Columns of characters where there is no terminal: a file or a pipe takes any line."""


def output_console() -> Console:
    """Standard output; as wide as need be where it is no terminal, unless `COLUMNS` says how wide."""
    console = Console()
    return console if console.is_terminal or "COLUMNS" in os.environ else Console(width=WIDTH_ELSEWHERE)


def folding(table: Table) -> Table:
    """The same table, whose texts go on in the next line where a terminal is too narrow: a name that is cut is none."""
    for column in table.columns:
        column.overflow, column.no_wrap = "fold", False
    return table


def print_table(table: Table) -> None:
    """On standard output."""
    output_console().print(folding(table))
