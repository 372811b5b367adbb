"""How far a backtest has come, on standard error: a bar on a terminal, else a line now and then."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from engine_hooks.commands.counting import counted

LINE_EVERY_S: Final = 15.0
"""Between two lines where there is no terminal."""

Watching = Callable[[Sequence[datetime]], Iterable[datetime]]


@contextmanager
def looks(total: int) -> Iterator[Callable[[str], Watching]]:
    """So many looks are to come, at one rule after another. Gives what to pass a rule's instants through, by its name."""
    console = Console(stderr=True)
    if not console.is_terminal:
        lines = Lines(total, console)
        yield lambda rule: lambda at: lines.watching(rule, at)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=total)

        def watching(rule: str, at: Sequence[datetime]) -> Iterator[datetime]:
            bar.update(task, description=rule)
            for moment in at:
                yield moment
                bar.advance(task)

        yield lambda rule: lambda at: watching(rule, at)


class Lines:
    """How far it is, in lines.

    Args:
        elapsed_s: A monotonic clock.
    """

    def __init__(self, total: int, console: Console, elapsed_s: Callable[[], float] = time.monotonic) -> None:
        self._total = total
        self._console = console
        self._elapsed_s = elapsed_s
        self._began_s = self._said_s = elapsed_s()
        self._done = 0

    def watching(self, rule: str, at: Sequence[datetime]) -> Iterator[datetime]:
        """These instants, of that rule."""
        for moment in at:
            yield moment
            self._done += 1
            if self._elapsed_s() - self._said_s >= LINE_EVERY_S:
                self._say(rule)

    def _say(self, rule: str) -> None:
        self._said_s = self._elapsed_s()
        left_s = (self._said_s - self._began_s) * (self._total / self._done - 1)
        self._console.print(
            f"{rule}: {self._done:,} of {counted(self._total, 'look')}, about {left_s:,.0f} s left", soft_wrap=True
        )
