"""`tachograph alerts backtest`: what the rules would have done."""

import statistics
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table

from engine_hooks.commands.terminal import folding, output_console
from queries.commands.alerts.settings import EvaluatingSettings

if TYPE_CHECKING:
    from queries.alerts.backtest import Episode


def backtest(
    settings: EvaluatingSettings,
    *,
    rule: Annotated[str | None, typer.Argument(help="One rule; without it, every rule with a query.")] = None,
    since: Annotated[str, typer.Option(metavar="TIME", help="From then on: ISO 8601, or -7d; 7d is the same.")] = "-1d",
    until: Annotated[str, typer.Option(metavar="TIME", help="Up to then.")] = "now",
    step: Annotated[float, typer.Option(min=1, max=3600, help="Seconds between two evaluations.")] = 30.0,
) -> None:
    """Evaluate the rules on stored data as if they had run then: what would have fired, how often, and how long after the
    trouble began someone could have seen it.

    Exit codes: 0 done; 2 a wrong call; 3 no ClickHouse answers; 4 ClickHouse refused a query.
    """
    from queries.alerts.backtest import backtest as tested  # noqa: PLC0415 (slow to load)
    from queries.alerts.backtest import instants  # noqa: PLC0415
    from queries.alerts.loading import load_rules  # noqa: PLC0415
    from queries.alerts.looking_back import instant_of  # noqa: PLC0415
    from queries.alerts.sources import StoredSource  # noqa: PLC0415

    rules = load_rules(settings.alert_rules, settings.alert_interval_s)
    chosen = [rules.named(rule)] if rule else [one for one in rules.rules if one.query]
    source = StoredSource(settings.clickhouse_url, settings.rows_url)
    start = instant_of(f"-{since}" if since[:1].isdigit() and since[-1:] in "smhd" else since)
    end = instant_of(until)
    console = output_console()
    summary = Table("rule", "fired", "series", "seen after", "lasted", box=None, pad_edge=False)
    episodes: list[Episode] = []
    for one in chosen:
        every_s = max(step, one.every)
        watching = progress(one.alert)
        found = tested(one, source, instants(start, end, every_s), every_s, watching)
        summary.add_row(one.alert, str(len(found)), str(len({each.identity for each in found})), *durations(found))
        episodes += found
    for episode in sorted(episodes, key=lambda each: each.fired_at):
        console.print(line_of(episode), soft_wrap=True, markup=False)
    console.print(folding(summary))


def progress(name: str) -> Callable[[Iterable[datetime]], Iterable[datetime]]:
    """A bar on a terminal's standard error."""
    console = Console(stderr=True)

    def watching(at: Iterable[datetime]) -> Iterable[datetime]:
        return track(list(at), name, console=console, transient=True, disable=not console.is_terminal)

    return watching


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
