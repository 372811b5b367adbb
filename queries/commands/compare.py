"""`tachograph compare`: two arms of a benchmark, cell against cell."""

import json
from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Literal, Protocol

import typer

from queries.compare.errors import FailOnError
from queries.errors import CallError
from queries.parameters import begun

if TYPE_CHECKING:
    from queries.compare.comparison import Comparison

Format = Literal["table", "markdown", "json"]
MetricName = Literal["tokens_per_s", "plain_fraction"]


class VerdictName(StrEnum):
    """A verdict as an option writes it."""

    BETTER = "better"
    WORSE = "worse"
    WITHIN_NOISE = "within-noise"
    UNDETERMINED = "undetermined"


class Settings(Protocol):
    """What this command needs to know."""

    @property
    def clickhouse_url(self) -> str: ...


def compare(
    settings: Settings,
    *,
    arm: Annotated[
        str, typer.Option(metavar="BEFORE,AFTER", help="The arm compared with, and the arm judged.")
    ] = "before,after",
    by: Annotated[
        str,
        typer.Option(
            metavar="LABEL,…",
            help="What makes a row: host, package, recipe, concurrency, engine, version, service, cost_model.",
        ),
    ] = "host,package",
    metric: Annotated[MetricName, typer.Option(help="What is compared.")] = "tokens_per_s",
    from_: Annotated[
        str | None, typer.Option("--from", metavar="TIME", help="Executions from then on: ISO 8601, or -2h.")
    ] = None,
    to: Annotated[str | None, typer.Option(metavar="TIME", help="Executions before then.")] = None,
    smallest_shift: Annotated[
        float, typer.Option(min=0.001, max=100, help="The smallest shift that matters, in % (points for a fraction).")
    ] = 0.5,
    format: Annotated[Format, typer.Option("--format", "-f", help="markdown is for a pull request.")] = "table",
    fail_on: Annotated[
        list[VerdictName] | None, typer.Option(help="Exit with 6 if any row has this verdict; may be repeated.")
    ] = None,
) -> None:
    """Compare two arms of a benchmark: pairs in mirrored order, intervals, verdicts.

    Exit codes: 0 compared; 2 a wrong call; 3 no ClickHouse answers; 4 ClickHouse refused;
    5 no cells make a pair; 6 a verdict that --fail-on names.
    """
    from queries.compare.cells import labels_named  # noqa: PLC0415
    from queries.compare.comparison import Metric  # noqa: PLC0415 (scipy slows the start)
    from queries.compare.stored import compare_stored  # noqa: PLC0415

    comparison = compare_stored(
        settings.clickhouse_url,
        arms_of(arm),
        by=labels_named(by),
        metric=Metric(metric),
        smallest_shift=smallest_shift,
        from_=begun("--from", from_),
        to=to,
    )
    show(comparison, format)
    check(comparison, fail_on or [])


def arms_of(text: str) -> tuple[str, str]:
    """The two arms of `BEFORE,AFTER`.

    Raises:
        CallError: it names not two.
    """
    names = [name.strip() for name in text.split(",")]
    if len(names) != 2 or not all(names):
        raise CallError(f"--arm {text}: it takes two names, --arm before,after")
    return names[0], names[1]


def show(comparison: "Comparison", format: Format) -> None:
    """Print it."""
    from queries.compare.document import document  # noqa: PLC0415 (as above)
    from queries.compare.markdown import markdown  # noqa: PLC0415
    from queries.compare.terminal import rendered  # noqa: PLC0415
    from queries.terminal import printed  # noqa: PLC0415

    if format == "json":
        typer.echo(json.dumps(document(comparison), indent=1, ensure_ascii=False))
    elif format == "markdown":
        typer.echo(markdown(comparison), nl=False)
    else:
        typer.echo(printed(rendered(comparison)).decode(), nl=False)


def check(comparison: "Comparison", fail_on: Sequence[VerdictName]) -> None:
    """Raise `FailOnError` where a row has one of these verdicts."""
    from queries.compare.wording import name_of  # noqa: PLC0415 (as above)

    failing = [row for row in comparison.rows if row.verdict.replace(" ", "-") in fail_on]
    if failing:
        rows = ", ".join(f"{name_of(row)} is {row.verdict}" for row in failing)
        raise FailOnError(f"--fail-on: {comparison.arms[1]} against {comparison.arms[0]}: {rows}")
