"""`tachograph alerts backtest`: what the rules would have done."""

import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from engine_hooks.commands.terminal import folding, output_console
from queries.commands.alerts.looks import looks
from queries.commands.alerts.settings import EvaluatingSettings

if TYPE_CHECKING:
    from queries.alerts.backtest import Episode


def backtest(
    settings: EvaluatingSettings,
    *,
    rule: Annotated[str | None, typer.Argument(help="One rule; without it, every rule with a query.")] = None,
    since: Annotated[str, typer.Option(metavar="TIME", help="From then on: ISO 8601, or -6h; 6h is the same.")] = "-6h",
    until: Annotated[str, typer.Option(metavar="TIME", help="Up to then.")] = "now",
    step: Annotated[
        float | None,
        typer.Option(
            min=1,
            max=3600,
            help="Seconds between two looks.",
            show_default="30, or what makes 360 looks at a rule",
        ),
    ] = None,
) -> None:
    """Evaluate the rules on stored data as if they had run then: what would have fired, how often, and how long after the
    trouble began someone could have seen it.

    It rests after each query for as long as that took, so that the rules of the present are answered meanwhile.

    Exit codes: 0 done; 2 a wrong call; 3 no ClickHouse answers; 4 ClickHouse refused a query.
    """
    from queries.alerts.backtest import backtest as tested  # noqa: PLC0415 (slow to load)
    from queries.alerts.backtest import planned  # noqa: PLC0415
    from queries.alerts.loading import load_rules  # noqa: PLC0415
    from queries.alerts.looking_back import past_instant_of  # noqa: PLC0415
    from queries.alerts.sources import GENTLE, GentleSource, StoredSource  # noqa: PLC0415

    rules = load_rules(settings.alert_rules, settings.alert_interval_s)
    chosen = [rules.named(rule)] if rule else [one for one in rules.rules if one.query]
    source = GentleSource(StoredSource(settings.clickhouse_url, settings.rows_url, GENTLE))
    start = past_instant_of("--since", f"-{since}" if since[:1].isdigit() and since[-1:] in "smhd" else since)
    end = past_instant_of("--until", until)
    plans = [planned(one, source, start, end, step) for one in chosen]
    console = output_console()
    summary = Table("rule", "looked every", "fired", "series", "seen after", "lasted", box=None, pad_edge=False)
    episodes: list[Episode] = []
    with looks(sum(len(plan.at) for plan in plans)) as watching:
        for one, plan in zip(chosen, plans, strict=True):
            found = tested(one, source, plan, watching(one.alert))
            series = {each.identity for each in found}
            summary.add_row(one.alert, f"{plan.step_s:,.0f} s", str(len(found)), str(len(series)), *durations(found))
            episodes += found
    for episode in sorted(episodes, key=lambda each: each.fired_at):
        console.print(line_of(episode), soft_wrap=True, markup=False)
    console.print(folding(summary))
    if any(plan.step_s > max(settings.alert_interval_s, one.every) for one, plan in zip(chosen, plans, strict=True)):
        console.print(coarse(settings.alert_interval_s), soft_wrap=True)


def coarse(interval_s: float) -> str:
    """What a step leaves out."""
    return (
        f"The evaluator looks every {interval_s:g} s. Here what came and went between two looks is not found, and the rest"
        f" is seen later: --step {interval_s:g}, of a shorter time or one rule, shows it."
    )


def durations(episodes: "Sequence[Episode]") -> tuple[str, str]:
    """Medians of how soon, and how long."""
    seen = [one.seen_after_s for one in episodes if one.seen_after_s is not None]
    lasted = [one.lasted_s for one in episodes if one.lasted_s is not None]
    return median_of(seen), median_of(lasted)


def median_of(values: Sequence[float]) -> str:
    return f"{statistics.median(values):,.0f} s" if values else ""


def line_of(episode: "Episode") -> str:
    """One time that an alert would have fired."""
    lasted = "on at the end" if episode.lasted_s is None else f"{episode.ended} after {episode.lasted_s:,.0f} s"
    seen = "" if episode.seen_after_s is None else f", {episode.seen_after_s:,.0f} s after it began"
    return f"{episode.fired_at:%Y-%m-%d %H:%M:%S}  {episode.alert}{seen}, {lasted}: {episode.summary}"
