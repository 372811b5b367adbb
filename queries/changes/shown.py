"""Changes for the eye and for machines."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from engine_hooks.commands.counting import counted
from engine_hooks.commands.terminal import shortened
from queries.changes.found import Change, Difference, sparkline
from queries.changes.history import LABELS, METRICS, History, Metric
from queries.clocks_ahead import clock_words
from queries.terminal import Fitting

CLOCKS_TOLD: Final = 3
ELSE_WIDTH_MIN: Final = 26
"""Columns of characters of what else changed: more of it folds."""


def rendered(changes: Sequence[Change], metric: Metric, by: Sequence[str]) -> RenderableType:
    """The table; where a terminal is too narrow for it, a few lines for each change."""
    longest = max((len(difference_text(one)) for change in changes for one in change.differences), default=0)
    may_fold = max(0, longest - ELSE_WIDTH_MIN)
    return Fitting(table_of(changes, metric, by), blocks(changes, metric, by), may_fold)


def blocks(changes: Sequence[Change], metric: Metric, by: Sequence[str]) -> RenderableType:
    """A few short lines for each change."""
    legend = f"When (UTC), {', '.join(by)}: the change in % with its 95 % interval. {caption(changes, metric)}."
    return Group(Text(legend, style="dim"), *(block(change, metric) for change in changes))


def block(change: Change, metric: Metric) -> RenderableType:
    """One change."""
    before, after = sparkline(change.values, change.point.start)
    low, high = change.point.shift_interval_percent
    labels = " ".join(shortened(label) or "-" for label in change.labels)
    shift = Text.assemble(
        f"\n{moment(change)}  {labels}: ", (percent(change), style_of(change)), f" ({low:+.1f} to {high:+.1f})"
    )
    values = f"  {values_text(change, metric)} {METRICS[metric].unit}, p {change.point.p_value:.1g}"
    lines = [Text(f"  {difference_text(one)}") for one in change.differences]
    return Group(shift, Text(values), Text.assemble("  ", before, (after, style_of(change))), *lines)


def table_of(changes: Sequence[Change], metric: Metric, by: Sequence[str]) -> Table:
    """One line for each change."""
    unit = METRICS[metric].unit
    table = Table(caption=caption(changes, metric))
    for heading in (
        "when\nUTC",
        *by,
        f"before -> after\n{unit}",
        "change %\n95 % interval",
        "p",
        "series",
    ):
        table.add_column(heading, no_wrap=True)
    table.add_column("what else", overflow="fold", min_width=ELSE_WIDTH_MIN)
    for change in changes:
        table.add_row(*cells_of(change, metric))
    return table


def cells_of(change: Change, metric: Metric) -> list[Text | str]:
    """One line's texts."""
    before, after = sparkline(change.values, change.point.start)
    low, high = change.point.shift_interval_percent
    return [
        moment(change),
        *(Text(shortened(label) or "-") for label in change.labels),
        values_text(change, metric),
        Text.assemble((percent(change), style_of(change)), f"\n{low:+.1f} to {high:+.1f}"),
        f"{change.point.p_value:.1g}",
        Text.assemble(before, (after, style_of(change))),
        Text("\n".join(map(difference_text, change.differences))),
    ]


def caption(changes: Sequence[Change], metric: Metric) -> str:
    """How many, and what p is."""
    return f"{counted(len(changes), 'change')} of {metric}; p of the Mann-Whitney test, of each change alone"


def moment(change: Change) -> str:
    """When, in UTC."""
    return f"{change.at:%Y-%m-%d %H:%M:%S}"


def values_text(change: Change, metric: Metric) -> str:
    """From what to what, in the metric's unit."""
    digits = 0 if metric is Metric.TOKENS_PER_S else 3
    return f"{change.point.before:.{digits}f} -> {change.point.after:.{digits}f}"


def percent(change: Change) -> str:
    """By how much."""
    return f"{change.point.shift_percent:+.1f}"


def style_of(change: Change) -> str:
    """What is worse is red."""
    return "bold red" if change.is_worse else "bold green"


def difference_text(one: Difference) -> str:
    """What another label was, and is."""
    return f"{LABELS[one.label]} {shortened(one.before) or '-'} -> {shortened(one.after) or '-'}"


def clocks_line(ahead_s: Mapping[str, float]) -> str:
    """Whose clocks are ahead, the furthest first, and what is left out; '' where none is."""
    hosts = sorted(ahead_s, key=lambda host: (-ahead_s[host], host))
    told = ", ".join(f"{shortened(host)}: {clock_words(ahead_s[host])}" for host in hosts[:CLOCKS_TOLD])
    more = f" and {counted(len(hosts) - CLOCKS_TOLD, 'host')} more" if hosts[CLOCKS_TOLD:] else ""
    return f"{told}{more}; what that puts after the newest arrival is left out" if hosts else ""


def document_of(found: Sequence[Change], history: History, metric: Metric, by: Sequence[str]) -> dict[str, Any]:
    """Everything, as JSON has it."""
    return {
        "metric": str(metric),
        "unit": METRICS[metric].unit,
        "by": list(by),
        "changes": [
            dict(zip(by, change.labels, strict=True))
            | {
                "at": change.at.isoformat(),
                "after": change.after.isoformat(),
                "before_value": change.point.before,
                "after_value": change.point.after,
                "shift_percent": change.point.shift_percent,
                "shift_interval_percent": list(change.point.shift_interval_percent),
                "p_value": change.point.p_value,
                "is_worse": change.is_worse,
                "points_before": change.point.start,
                "points": len(change.values),
                "differences": [
                    {"label": LABELS[one.label], "before": one.before, "after": one.after} for one in change.differences
                ],
            }
            for change in found
        ],
        "clocks_ahead": [{"host": host, "ahead_s": by_s} for host, by_s in sorted(history.ahead_s.items())],
    }
