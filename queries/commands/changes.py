"""`tachograph changes`: when a fleet's figures became other ones, and what else changed then."""

import json
from typing import Annotated, Literal, Protocol

import typer

from queries.parameters import begun

MetricName = Literal["gpu_time", "tokens_per_s", "acceptance", "handoff"]


class Settings(Protocol):
    """What this command needs to know."""

    @property
    def clickhouse_url(self) -> str: ...


def changes(
    settings: Settings,
    *,
    metric: Annotated[MetricName, typer.Option(help="What may have changed.")] = "gpu_time",
    by: Annotated[
        str | None,
        typer.Option(
            metavar="LABEL,…",
            help="One series for each host, graph, package, version, recipe, cost_model, arm, service, engine, instance.",
            show_default="host,graph; host for tokens_per_s",
        ),
    ] = None,
    from_: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="TIME",
            help="From then on: ISO 8601, or -2h.",
            show_default="a week up to the newest arrival",
        ),
    ] = None,
    to: Annotated[
        str | None, typer.Option(metavar="TIME", help="Before then.", show_default="the newest arrival")
    ] = None,
    smallest_change: Annotated[
        float, typer.Option(min=0.01, max=1000, help="Changes smaller than this many per cent are not told.")
    ] = 1.0,
    format: Annotated[Literal["table", "json"], typer.Option("--format", "-f")] = "table",
) -> None:
    """Find the change points in a fleet's history. One bad cell of 30 s is not a change, slow drift is none either.

    Exit codes: 0 looked (no change says so on standard error); 2 a wrong call; 3 no ClickHouse answers;
    4 ClickHouse refused.
    """
    from queries.changes.found import changes_in  # noqa: PLC0415 (scipy slows the start)
    from queries.changes.history import Metric, labels_for, stored_series  # noqa: PLC0415
    from queries.changes.shown import clocks_line, document_of, rendered  # noqa: PLC0415
    from queries.terminal import printed  # noqa: PLC0415

    chosen = Metric(metric)
    labels = labels_for(chosen, by)
    history = stored_series(settings.clickhouse_url, chosen, labels, begun("--from", from_), to)
    found = changes_in(history.series, chosen, smallest_change)
    if format == "json":
        typer.echo(json.dumps(document_of(found, history, chosen, labels), indent=1, ensure_ascii=False))
    elif found:
        typer.echo(printed(rendered(found, chosen, labels)).decode(), nl=False)
    if not found:
        points = sum(len(one.points) for one in history.series)
        typer.echo(f"no change of {metric} in {len(history.series)} series, {points} points in all", err=True)
    if clocks := clocks_line(history.ahead_s):
        typer.echo(f"{clocks} (--to TIME looks up to then)", err=True)
