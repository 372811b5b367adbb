"""Changes and drift of graphs in words and tables: pure functions, so that tests need no browser."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta, tzinfo

import pandas as pd

from dashboards.rows import Row, rows_of
from dashboards.words.markdown import short
from dashboards.words.tables import figure
from dashboards.words.texts import age, clock, escaped, utc_text
from engine_hooks.commands.counting import counted
from queries.changes.detection import POINTS_NEEDED
from queries.changes.found import Change, Extent

DRIFT_MIN_PERCENT = 1.0
"""Smaller drifts are not told."""
DRIFT_MIN_SPREADS = 3.0
"""Nor those that one cell may differ by from the next."""
ROWS_MAX = 20
STEP = timedelta(seconds=30)
"""The shortest step of the query `graph_history`."""


def changes_sentence(changes: Sequence[Change], words: str, since: str, zone: tzinfo) -> str:
    """What changed last and worst, or that nothing did."""
    if not changes:
        return f"No change of level in the {words} of any graph {since}."
    worst = max(changes, key=lambda change: abs(change.point.shift_percent))
    host, graph = (escaped(label) for label in worst.labels)
    direction = "rose" if worst.point.shift_percent > 0 else "fell"
    at = clock(
        pd.Timestamp(worst.at).tz_localize(UTC) if worst.at.tzinfo is None else worst.at, zone, datetime.now(UTC)
    )
    return (
        f"**The {words} of {graph} on {host} {direction} by {abs(worst.point.shift_percent):.1f} % at {at}**, from"
        f" {worst.point.before:.2f} to {worst.point.after:.2f} ms; {counted(len(changes), 'change')} of level {since}."
    )


def too_little_sentence(extents: Sequence[Extent], words: str) -> str:
    """That too little is stored to tell a change of level, and how much it is.

    Args:
        extents: Of the series that were looked through, none of which is long enough.
        words: What was looked for.
    """
    if not extents:
        return f"No {words} is stored to tell a change of level by."
    longest = max(extents, key=lambda one: one.points)
    span = age(longest.last - longest.first + STEP)
    steps = counted(longest.points, "step")
    return (
        f"Only {span} of data, {steps} of {STEP.seconds} s or more: too little to tell a change of level in the {words}."
        f" It takes {POINTS_NEEDED} steps of one graph on one host, {POINTS_NEEDED // 2} before the change and as many after it."
    )


def nothing_sentence(wanted: Mapping[str, str], words: str, since: str, *, has_executions: bool) -> str:
    """That there is nothing to show, and of what.

    Args:
        wanted: The filters, by name.
        words: The measure.
        since: The time range in words.
        has_executions: Executions match, but none of them has the measure.
    """
    which = ", ".join(f"{name} {escaped(value)}" for name, value in wanted.items() if value)
    of = f" of {which}" if which else ""
    if has_executions:
        return f"No {words}{of} is known {since}, though executions are stored."
    return f"No graph executions {since} match {which}." if which else f"No graph executions {since}."


def changes_table(changes: Sequence[Change], zone: tzinfo) -> str:
    """Every change, the latest first, as Markdown."""
    head = (
        "| Since | Host | Graph | Before → after, ms | Change, % | 95 % interval | What else became different |\n"
        "| :-- | :-- | :-- | --: | --: | --: | :-- |"
    )
    return "\n".join([head, *(change_row(change, zone) for change in changes[:ROWS_MAX])])


def change_row(change: Change, zone: tzinfo) -> str:
    """One change; UTC on hover."""
    at = pd.Timestamp(change.at)
    at = at.tz_localize(UTC) if at.tzinfo is None else at
    low, high = change.point.shift_interval_percent
    others = ", ".join(
        f"{escaped(one.label)} {short(one.before or '-')} → {short(one.after or '-')}" for one in change.differences
    )
    columns = [
        f'<span title="{utc_text(at)}">{clock(at, zone, datetime.now(UTC))}</span>',
        *(short(label) for label in change.labels),
        f"{change.point.before:.3f} → {change.point.after:.3f}",
        f"{'▲' if change.point.shift_percent > 0 else '▼'} {change.point.shift_percent:+.1f}",
        f"{low:+.1f} to {high:+.1f}",
        others,
    ]
    return "| " + " | ".join(columns) + " |"


def drifting(drift: pd.DataFrame) -> pd.DataFrame:
    """Rows of `gpu_time_drift` worth telling, the largest first: beyond what the cells before differ by among themselves."""
    if drift.empty:
        return drift
    is_large = drift.drift_percent.astype("float64").abs() >= DRIFT_MIN_PERCENT
    return drift[is_large & (drift.drift_in_spreads.astype("float64").abs() >= DRIFT_MIN_SPREADS)].head(ROWS_MAX)


def comparable(drift: pd.DataFrame) -> pd.DataFrame:
    """Rows of `gpu_time_drift` that are enough to speak of drift: of how far the cells before differ something is known."""
    return drift if drift.empty else drift[drift.drift_in_spreads.notna()]


def drift_table(drift: pd.DataFrame) -> str:
    """Rows of `gpu_time_drift` as Markdown."""
    head = (
        "| Graph | Host | Package | Before → now, ms | Drift, % | In spreads |\n| :-- | :-- | :-- | --: | --: | --: |"
    )
    rows = [
        f"| {short(row.graph_name)} | {short(row.host_name)} | {short(row.engine_package)}"
        f" | {row.gpu_time_mean_before_ns / 1e6:.3f} → {row.gpu_time_mean_ns / 1e6:.3f}"
        f" | {'▲' if row.drift_percent > 0 else '▼'} {row.drift_percent:+.1f} | {figure(row.drift_in_spreads, '+.1f')} |"
        for row in rows_of(drift)
    ]
    return "\n".join([head, *rows])


def costs_table(costs: pd.DataFrame) -> str:
    """Rows of `graph_costs` as Markdown, in ms."""
    head = (
        "| Graph | Host | Package | Executions | GPU time: median | 10th to 90th | 99th | Wall time: median"
        " | Handoff: median | Estimate: mean | Estimate / GPU time |\n"
        "| :-- | :-- | :-- | --: | --: | --: | --: | --: | --: | --: | --: |"
    )
    return "\n".join([head, *(cost_row(row) for row in rows_of(costs.sort_values(["graph_name", "host_name"])))])


def cost_row(row: Row) -> str:
    """One graph on one host and package."""

    def ms(column: str) -> str:
        value = getattr(row, column)
        return "" if pd.isna(value) else f"{value / 1e6:.3f}"

    columns = [
        *(short(getattr(row, name)) for name in ("graph_name", "host_name", "engine_package")),
        f"{row.executions:,}",
        ms("gpu_time_median_ns"),
        f"{ms('gpu_time_p10_ns')} to {ms('gpu_time_p90_ns')}",
        *(ms(name) for name in ("gpu_time_p99_ns", "wall_time_median_ns", "handoff_median_ns", "estimate_mean_ns")),
        figure(row.estimate_to_gpu_time, ".3f"),
    ]
    return "| " + " | ".join(columns) + " |"
