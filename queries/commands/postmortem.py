"""`tachograph postmortem`: the story of a slow cell, with the SQL behind every sentence."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol

import typer
from rich.console import Console
from rich.progress import track

from queries.commands.output import format_of, write
from queries.errors import CallError
from queries.parameters import begun

if TYPE_CHECKING:
    from queries.postmortem.story import Story
    from queries.postmortem.told import ToldCell, ToldRange

Format = Literal["terminal", "markdown", "json"]
SUFFIXES: dict[str, Format] = {".md": "markdown", ".json": "json", ".txt": "terminal"}
EXPORTS = ("perfetto",)


class Settings(Protocol):
    """What this command needs to know."""

    @property
    def clickhouse_url(self) -> str: ...


def postmortem(
    settings: Settings,
    *,
    cell: Annotated[
        str | None,
        typer.Argument(help="As `tachograph query cells` names it. Without it: the costliest of those asked for."),
    ] = None,
    engine: Annotated[str, typer.Option(help="Its engine instance; needed where several have such a cell.")] = "",
    from_: Annotated[
        str | None, typer.Option("--from", metavar="TIME", help="Cells from then on: ISO 8601, or -2h.")
    ] = None,
    to: Annotated[str | None, typer.Option(metavar="TIME", help="Cells before then.")] = None,
    format: Annotated[
        Format | None, typer.Option("--format", "-f", help="Default: by the suffix of --output; without it, terminal.")
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write the story to this file.")] = None,
    sql: Annotated[bool, typer.Option("--sql", help="Print each query in full, in the terminal as well.")] = False,
    export: Annotated[
        tuple[str, Path] | None,
        typer.Option(metavar="perfetto FILE", help="Write the cell's timeline as well, for https://ui.perfetto.dev."),
    ] = None,
) -> None:
    """Tell what happened in a cell: what was chosen, why, what it cost, and what shows it.

    Without a cell, every flagged cell of the range is looked at (the last hour, where no range is given),
    and the story of the costliest is told.

    Exit codes: 0 told; 2 a wrong call, or no such cell; 3 no ClickHouse answers; 4 ClickHouse refused the query.
    """
    from queries.postmortem.told import told, told_range  # noqa: PLC0415 (scipy and numpy slow the start)

    chosen = format_of(format, output, SUFFIXES, "terminal")
    if export and export[0] not in EXPORTS:
        raise CallError(
            f"--export {export[0]}: the timeline is written as {' or '.join(EXPORTS)}, --export perfetto FILE"
        )
    if cell and (from_ or to):
        raise CallError("a cell is told whole: --from and --to choose among cells where none is named")
    if cell:
        one = told(settings.clickhouse_url, cell, engine)
        content = written(one.story, chosen, sql)
    else:
        among = told_range(settings.clickhouse_url, engine, begun("--from", from_), to, with_progress)
        one = among.told[0]
        content = overview(among, chosen) + written(one.story, chosen, sql)
    write(content, output)
    if export:
        write_trace(one, export[1])


def written(story: "Story", chosen: Format, with_sql: bool) -> bytes:
    """One story in the format chosen."""
    from queries.postmortem.machine import json_of  # noqa: PLC0415 (as above)
    from queries.postmortem.markdown import markdown_of  # noqa: PLC0415
    from queries.postmortem.terminal import rendered  # noqa: PLC0415
    from queries.terminal import printed  # noqa: PLC0415

    if chosen == "json":
        return json.dumps(json_of(story), indent=1, ensure_ascii=False).encode() + b"\n"
    if chosen == "markdown":
        return markdown_of(story).encode()
    return printed(rendered(story, with_sql))


def overview(among: "ToldRange", chosen: Format) -> bytes:
    """The flagged cells of a range, for people; a machine asks for `query cells`."""
    from queries.postmortem.terminal import table_of  # noqa: PLC0415 (as above)
    from queries.terminal import printed  # noqa: PLC0415

    return printed(table_of(among)) if chosen == "terminal" else b""


def with_progress(cells: list[dict[str, Any]]) -> Iterable[dict[str, Any]]:
    """The cells, with a bar on a terminal's standard error."""
    console = Console(stderr=True)
    return track(cells, "looking at flagged cells", console=console, transient=True, disable=not console.is_terminal)


def write_trace(one: "ToldCell", file: Path) -> None:
    """The timeline, as a file that Perfetto opens.

    Raises:
        CallError: the file cannot be written.
    """
    from queries.postmortem.perfetto import trace_of  # noqa: PLC0415 (as above)

    write(json.dumps(trace_of(one.recorded, one.story.diagnosis, one.story.noted.marks)).encode(), file)
    typer.echo(f"{file}: open it at https://ui.perfetto.dev", err=True)
