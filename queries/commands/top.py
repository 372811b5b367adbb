"""`tachograph top`: the fleet live in a terminal."""

import os
import sys
from typing import Annotated, Protocol

import typer

from queries.errors import CallError


class Settings(Protocol):
    """What this command needs to know."""

    @property
    def clickhouse_url(self) -> str: ...


def top(
    settings: Settings,
    *,
    host: Annotated[str, typer.Option(help="Only hosts whose name contains this.")] = "",
    once: Annotated[bool, typer.Option("--once", help="Print one frame, with every engine, and end.")] = False,
) -> None:
    """Show the fleet: one row an engine, its newest cells to the right, what lost the most first.

    Each cell is a letter and a colour by its plain fraction, and a flag: ! stuck, ^ inflated, * both. ▼ is what was
    noted by `tachograph annotate`. Asked every 2 s; while ClickHouse is away, the last answer stays with its age.

    Exit codes: 0 shown; 2 no terminal; 3 no ClickHouse answers, or 4 it refused, with --once.
    """
    if once:
        print_once(settings.clickhouse_url, host)
        return
    if not (sys.stdin.isatty() and sys.stdout.isatty()) or os.environ.get("TERM", "dumb") == "dumb":
        raise CallError("top needs a terminal: `tachograph top --once` prints one frame")
    from queries.top.app import show  # noqa: PLC0415 (--help stays quick)
    from queries.top.frame import View  # noqa: PLC0415

    show(settings.clickhouse_url, View(host=host))


def print_once(url: str, host: str) -> None:
    """One frame, as wide as the terminal; elsewhere as wide as it takes, so that no name is cut.

    Raises:
        QueriesError: as `run`.
    """
    from datetime import UTC, datetime  # noqa: PLC0415

    from engine_hooks.commands.terminal import output_console  # noqa: PLC0415
    from queries.top.frame import Size, View, columns_for, frame  # noqa: PLC0415
    from queries.top.seen import answered, range_for  # noqa: PLC0415

    console = output_console()
    seen = answered(url, range_for(columns_for(console.width, ()).slots))
    printed = frame(seen, View(host=host), Size(console.width, None), datetime.now(UTC))
    console.print(printed, soft_wrap=True, highlight=False)
