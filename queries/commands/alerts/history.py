"""`tachograph alerts history`: what became of alerts."""

from pathlib import Path
from typing import Annotated

import typer

from queries.commands.alerts.settings import HistorySettings
from queries.commands.output import format_of, write
from queries.commands.query import SUFFIXES, OutputFormat, answer
from queries.parameters import begun


def history(
    settings: HistorySettings,
    *,
    alert: Annotated[str, typer.Argument(help="One rule's; without it, every rule's.")] = "",
    since: Annotated[str, typer.Option(metavar="TIME", help="From then on: ISO 8601, or -7d.")] = "-1d",
    host: Annotated[str, typer.Option(help="One host's.")] = "",
    limit: Annotated[int, typer.Option(min=1, help="At most so many changes, the latest first.")] = 200,
    format: Annotated[
        OutputFormat | None,
        typer.Option("--format", "-f", help="Default: by the suffix of --output; without it, table."),
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write to this file.")] = None,
) -> None:
    """Show the changes of alerts' states, as stored in `alert_history`.

    Tables round for the eye; csv, json and parquet are exact.

    Exit codes: 0 shown; 2 a wrong call; 3 no ClickHouse answers; 4 ClickHouse refused the query.
    """
    from queries.catalogue import find  # noqa: PLC0415 (slow to load)

    chosen = format_of(format, output, SUFFIXES, "table")
    values = {"from": begun("--since", since), "alert": alert, "host": host, "limit": limit}
    write(answer(settings, find("alert_history"), values, chosen, "no alert changed its state then"), output)
