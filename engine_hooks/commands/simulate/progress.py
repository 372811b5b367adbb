"""The terminal: results on standard output, progress on standard error."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

PIPED_WIDTH: Final = 160
"""Columns where no terminal says how many it has."""


def wide_console() -> Console:
    """Standard output, with room for a table where it is no terminal."""
    console = Console()
    return console if console.is_terminal else Console(width=PIPED_WIDTH)


@contextmanager
def progress_over(total: int, what: str) -> Iterator[Callable[[], object]]:
    """A bar that moves by one at each call of what it yields; none where standard error is no terminal."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(what, total=total)
        yield lambda: progress.advance(task)
