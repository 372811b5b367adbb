"""Changes for the eye and for machines."""

from collections.abc import Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from engine_hooks.commands.terminal import shortened
from queries.changes.found import Change, Difference, sparkline
from queries.changes.history import LABELS, METRICS, Metric


def table_of(changes: Sequence[Change], metric: Metric, by: Sequence[str]) -> Table:
    """One line for each change."""
    unit = METRICS[metric].unit
    table = Table(caption=f"{len(changes)} changes of {metric}; p of the Mann-Whitney test, of each change alone")
    for heading in (
        "when\nUTC",
        *by,
        f"before -> after\n{unit}",
        "change %\n95 % interval",
        "p",
        "series",
        "what else",
    ):
        table.add_column(heading, overflow="fold")
    for change in changes:
        table.add_row(*cells_of(change, metric))
    return table


def cells_of(change: Change, metric: Metric) -> list[Text | str]:
    """One line's texts."""
    point, digits = change.point, 0 if metric is Metric.TOKENS_PER_S else 3
    before, after = sparkline(change.values, point.start)
    low, high = point.shift_interval_percent
    style = "bold red" if change.is_worse else "bold green"
    return [
        f"{change.at:%Y-%m-%d %H:%M:%S}",
        *(Text(shortened(label) or "-") for label in change.labels),
        f"{point.before:.{digits}f} -> {point.after:.{digits}f}",
        Text.assemble((f"{point.shift_percent:+.1f}", style), f"\n{low:+.1f} to {high:+.1f}"),
        f"{point.p_value:.1g}",
        Text.assemble(before, (after, style)),
        Text("\n".join(map(difference_text, change.differences))),
    ]


def difference_text(one: Difference) -> str:
    """What another label was, and is."""
    return f"{LABELS[one.label]} {shortened(one.before) or '-'} -> {shortened(one.after) or '-'}"


def document_of(changes: Sequence[Change], metric: Metric, by: Sequence[str]) -> dict[str, Any]:
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
            for change in changes
        ],
    }
