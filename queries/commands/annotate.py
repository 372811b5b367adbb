"""`tachograph annotate`: a mark in time, that stands on every time axis and in post-mortems."""

import getpass
from typing import TYPE_CHECKING, Annotated, Protocol

import typer

from queries.commands.output import write
from queries.errors import CallError, QueriesError
from queries.parameters import begun

if TYPE_CHECKING:
    from queries.annotations.marks import Mark

LIST_SINCE = "-7d"
EVER = "2000-01-01"
MARKS_MAX = 100_000
ID_SHOWN = 8
"""Characters of an id in the list; the beginning is enough to name a mark."""


class Settings(Protocol):
    """What this command needs to know."""

    @property
    def clickhouse_url(self) -> str: ...

    @property
    def named_clickhouse_url(self) -> str:
        """The same where somebody named it, else ''."""

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
    listed: Annotated[bool, typer.Option("--list", help="List what was noted instead, with its ids.")] = False,
    remove: Annotated[
        str | None, typer.Option(metavar="ID", help="Take a mark back instead: its id, or how that begins.")
    ] = None,
    from_: Annotated[
        str | None, typer.Option("--from", metavar="TIME", help=f"With --list: from then on. Default: {LIST_SINCE}.")
    ] = None,
) -> None:
    """Mark an instant: it stands on the dashboards' time axes, in post-mortems and in `tachograph top`.

    Exit codes: 0 stored, listed or taken back; 2 a wrong call; 3 no collector or ClickHouse answers; 4 it refused.
    """
    if remove is not None:
        refuse("--remove takes a mark back", {"text": text, "--at": at, "--from": from_, "--list": listed or None})
        refuse(
            "--remove takes a mark back",
            {"--host": host or None, "--engine": engine or None, "--package": package or None},
        )
        take_back(settings, remove, user() if author is None else author)
        return
    if listed:
        refuse("--list shows what was noted", {"text": text, "--at": at, "--author": author})
        show(
            settings,
            {
                "host": host,
                "service_instance_id": engine,
                "package": package,
                "from": begun("--from", from_) or LIST_SINCE,
            },
        )
        return
    if from_ is not None:
        raise CallError("--from goes with --list; --at says when it happened")
    if text is None:
        raise CallError("say what happened, tachograph annotate 'deployed 188', or --list what was noted")
    from queries.annotations.marks import new_mark, store_mark  # noqa: PLC0415 (--help stays quick)

    by = user() if author is None else author
    mark = new_mark(text, at or "now", host=host, engine=engine, package=package, author=by)
    # Nothing is read for a mark: who names a collector alone gets it there.
    store_mark(settings.rows_url, mark, settings.named_clickhouse_url)
    typer.echo(line_of(mark))
    warn_of_strangers(settings, mark)


def refuse(what: str, given: dict[str, object]) -> None:
    """Raise `CallError` where something is given that is not taken then."""
    if name := next((name for name, value in given.items() if value is not None), None):
        raise CallError(f"{what}: it takes no {name}")


def line_of(mark: "Mark") -> str:
    """A mark for the terminal."""
    return f"{mark.at:%Y-%m-%d %H:%M:%S} UTC  {mark.text}" + (f"  ({mark.about})" if mark.about else "")


def warn_of_strangers(settings: Settings, mark: "Mark") -> None:
    """Say on standard error that no engine is what the mark is about: it may be misspelt, or yet to come."""
    from queries.runner import run  # noqa: PLC0415

    about = {"service_instance_id": mark.service_instance_id, "host": mark.host_name, "package": mark.engine_package}
    if not any(about.values()):
        return
    try:
        known = run("engines", settings.clickhouse_url, "rows", last_s=0, limit=1, **about)
    except QueriesError:  # it is noted; whom it concerns is not to be learnt now
        return
    if not known:
        typer.echo(
            f"tachograph: warning: no engine is stored that this is about ({mark.about}): is it misspelt?", err=True
        )


def take_back(settings: Settings, wanted: str, author: str) -> None:
    """Withdraw one mark."""
    from queries.annotations.marks import mark_of, the_mark, withdraw_mark  # noqa: PLC0415
    from queries.runner import run  # noqa: PLC0415

    rows = run("annotations", settings.clickhouse_url, "rows", limit=MARKS_MAX, **{"from": EVER})
    mark = the_mark(wanted, [mark_of(row) for row in rows])
    withdraw_mark(settings.rows_url, mark, author, settings.clickhouse_url)
    typer.echo(f"taken back: {line_of(mark)}")


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
    from queries.terminal import BY_FORMAT, answer_table  # noqa: PLC0415

    rows = run("annotations", settings.clickhouse_url, "rows", **values)
    if not rows:
        typer.echo("nothing was noted then", err=True)
        return
    shown = [row | {"annotation_id": row["annotation_id"][:ID_SHOWN]} for row in rows]
    by = f"tachograph query annotations {BY_FORMAT}"
    write(answer_table(find("annotations"), shown, by), None)
