"""`tachograph annotate`: a mark in time, that stands on every time axis and in post-mortems."""

import getpass
from typing import Annotated, Protocol

import typer

from queries.commands.output import write
from queries.errors import CallError

LIST_SINCE = "-7d"


class Settings(Protocol):
    """What this command needs to know."""

    @property
    def clickhouse_url(self) -> str: ...

    @property
    def rows_url(self) -> str: ...


def annotate(
    settings: Settings,
    *,
    text: Annotated[str | None, typer.Argument(help="What happened, in one line: 'deployed 188'.")] = None,
    host: Annotated[str, typer.Option(help="It is about this host; without it, about every one.")] = "",
    engine: Annotated[str, typer.Option(help="It is about this engine instance.")] = "",
    package: Annotated[str, typer.Option(help="It is about this package.")] = "",
    at: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="When: ISO 8601 (UTC where it names no zone), or -15m. Default: now."),
    ] = None,
    author: Annotated[str | None, typer.Option(help="Who notes it.", show_default="the user who runs it")] = None,
    listed: Annotated[bool, typer.Option("--list", help="List what was noted instead.")] = False,
    from_: Annotated[
        str | None, typer.Option("--from", metavar="TIME", help=f"With --list: from then on. Default: {LIST_SINCE}.")
    ] = None,
) -> None:
    """Mark an instant: it stands on the dashboards' time axes, in post-mortems and in `tachograph top`.

    Exit codes: 0 stored, or listed; 2 a wrong call; 3 no collector or ClickHouse answers; 4 it refused.
    """
    if listed:
        only_to_note = {"a text": text, "--at": at, "--author": author}
        if given := next((name for name, value in only_to_note.items() if value is not None), None):
            raise CallError(f"--list shows what was noted: it takes no {given.removeprefix('a ')}")
        show(settings, {"host": host, "service_instance_id": engine, "package": package, "from": from_ or LIST_SINCE})
        return
    if from_ is not None:
        raise CallError("--from goes with --list; --at says when it happened")
    if text is None:
        raise CallError("say what happened, tachograph annotate 'deployed 188', or --list what was noted")
    from queries.annotations.marks import new_mark, store_mark  # noqa: PLC0415 (--help stays quick)

    by = user() if author is None else author
    mark = new_mark(text, at or "now", host=host, engine=engine, package=package, author=by)
    store_mark(settings.rows_url, mark)
    typer.echo(f"{mark.at:%Y-%m-%d %H:%M:%S} UTC  {mark.text}" + (f"  ({mark.about})" if mark.about else ""))


def user() -> str:
    """Who runs this; '' where the system knows no name."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return ""


def show(settings: Settings, values: dict[str, str]) -> None:
    """What was noted, the latest first."""
    from queries.catalogue import find  # noqa: PLC0415 (slow to load)
    from queries.runner import run  # noqa: PLC0415
    from queries.terminal import answer_table  # noqa: PLC0415

    rows = run("annotations", settings.clickhouse_url, "rows", **values)
    if not rows:
        typer.echo("nothing was noted then", err=True)
        return
    write(answer_table(find("annotations"), rows), None)
