"""The cells of two arms as dots, so that nobody has to trust a mean."""

from collections.abc import Iterator
from typing import Any

import altair as alt
import pandas as pd

from dashboards.charts import palette, times
from dashboards.words.comparisons import group_name
from queries.compare.comparison import ArmCells, Comparison, Group, Metric

SELECTION = "cell"
"""Name of the selection that a click on a dot makes; its fields are `service_instance_id` and `cell`."""
GROUP_PX = 84
LABEL_PX = 130
TWO_LINES = "split(datum.label, ' · ')"
AXIS_TITLES = {
    Metric.TOKENS_PER_S: "tokens/s of each cell",
    Metric.PLAIN_FRACTION: "plain fraction of each cell",
}
STATES = ["not stuck", "stuck in plain decode"]


def arm_cells(comparison: Comparison) -> alt.LayerChart:
    """A dot for each cell by group and arm, the two of a pair joined, the mean as a line across."""
    rows = pd.DataFrame(cell_rows(comparison))
    arms = list(comparison.arms)
    base = alt.Chart(rows).encode(
        y=group_axis(),
        x=alt.X("value:Q", title=AXIS_TITLES[comparison.metric], scale=alt.Scale(zero=False), axis=value_axis()),
    )
    across = base.encode(yOffset=alt.YOffset("arm:N", sort=arms))
    chosen = alt.selection_point(name=SELECTION, fields=["service_instance_id", "cell"], toggle=False)
    dots = across.mark_point(size=72, strokeWidth=1.6, opacity=0.85, cursor="pointer").encode(
        color=alt.Color("arm:N", title=None, scale=arm_scale(arms), legend=legend()),
        fillOpacity=alt.FillOpacity("arm:N", scale=alt.Scale(domain=arms, range=[0, 0.7]), legend=None),
        fill=alt.Fill("arm:N", scale=arm_scale(arms), legend=None),
        shape=alt.Shape(
            "state:N",
            title=None,
            scale=alt.Scale(domain=STATES, range=["circle", "cross"]),
            legend=legend(symbolFillColor=palette.INK, symbolStrokeColor=palette.INK),
        ),
        tooltip=tooltip(comparison.metric),
    )
    chart: alt.LayerChart = alt.LayerChart(
        layer=[
            across.mark_line(color=palette.INK, strokeWidth=0.7, opacity=0.5).encode(detail="pair:N"),
            dots.add_params(chosen),
            across.mark_tick(thickness=3, size=22, color=palette.INK).encode(
                x=alt.X("mean(value):Q"), tooltip=[alt.Tooltip("arm:N"), alt.Tooltip("mean(value):Q", format=",.4~r")]
            ),
        ]
    ).properties(height=alt.Step(GROUP_PX / 2), autosize=alt.AutoSizeParams(type="fit-x", contains="padding"))
    return chart


def group_axis() -> alt.Y:
    """Groups from top to bottom in the order of the table, their labels broken into lines."""
    return alt.Y(
        "group:N",
        sort=None,
        title=None,
        scale=alt.Scale(paddingInner=0.25),
        axis=alt.Axis(labelExpr=TWO_LINES, labelLimit=LABEL_PX, ticks=False, domain=False, **times.lines(2)),
    )


def value_axis() -> alt.Axis:
    """Values, few enough that they do not meet on a narrow screen."""
    return alt.Axis(tickCount=5, format=",~f", labelOverlap=True)


def arm_scale(arms: list[str]) -> alt.Scale:
    """Hollow grey before, filled blue after."""
    return alt.Scale(domain=arms, range=[palette.BEFORE, palette.AFTER])


def legend(**colours: Any) -> alt.Legend:
    """Above the chart, in a column, so that two of them stand side by side on a telephone."""
    return alt.Legend(orient="top", columns=1, labelLimit=0, **colours)


def tooltip(metric: Metric) -> list[alt.Tooltip]:
    """What hovering over a cell tells."""
    return [
        alt.Tooltip("cell:N"),
        alt.Tooltip("arm:N"),
        alt.Tooltip("group:N"),
        alt.Tooltip("value:Q", title=str(metric), format=",.4~r"),
        alt.Tooltip("state:N"),
        alt.Tooltip("pair:N"),
        alt.Tooltip("position:Q", title="position in the order"),
        *times.tooltip("started_ms", "started_utc", "began"),
    ]


def cell_rows(comparison: Comparison) -> Iterator[dict[str, Any]]:
    """A row for each paired cell."""
    for group in comparison.groups:
        for arm, cells in zip(comparison.arms, (group.before, group.after), strict=True):
            yield from arm_rows(group, arm, cells)


def arm_rows(group: Group, arm: str, arm_cells: ArmCells) -> Iterator[dict[str, Any]]:
    """A row for each cell of one arm of a group."""
    name = group_name(group)
    for number, (value, cell) in enumerate(zip(arm_cells.values, arm_cells.cells, strict=True), 1):
        began = pd.Timestamp(cell.started_at)
        began = began.tz_localize("UTC") if began.tzinfo is None else began
        yield {
            "group": name,
            "arm": arm,
            "value": value,
            "state": STATES[cell.stuck],
            "pair": f"{number} of {name}",
            "position": cell.position,
            "service_instance_id": cell.instance,
            "cell": cell.cell,
            "started_ms": began.timestamp() * 1000,
            "started_utc": times.utc(pd.Series([began]))[0],
        }
