"""`tachograph alerts history`: what became of alerts."""

from typing import Annotated

import typer

from queries.commands.alerts.settings import HistorySettings
from queries.commands.output import write
from queries.parameters import begun


def history(
    settings: HistorySettings,
    *,
    alert: Annotated[str, typer.Argument(help="One rule's; without it, every rule's.")] = "",
    since: Annotated[str, typer.Option(metavar="TIME", help="From then on: ISO 8601, or -7d.")] = "-1d",
    host: Annotated[str, typer.Option(help="One host's.")] = "",
    limit: Annotated[int, typer.Option(min=1, help="At most so many changes, the latest first.")] = 200,
) -> None:
    """Show the changes of alerts' states, as stored in `alert_history`.

    Exit codes: 0 shown; 2 a wrong call; 3 no ClickHouse answers; 4 ClickHouse refused the query.
    """
    from queries.catalogue import find  # noqa: PLC0415 (slow to load)
    from queries.runner import run  # noqa: PLC0415
    from queries.terminal import answer_table  # noqa: PLC0415

    values = {"from": begun("--since", since), "alert": alert, "host": host, "limit": limit}
    rows = run("alert_history", settings.clickhouse_url, "rows", **values)
    if not rows:
        typer.echo("no alert changed its state then", err=True)
        return
    write(answer_table(find("alert_history"), rows), None)
