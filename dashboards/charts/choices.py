"""Who was chosen: each graph's share of the wall time of a cell."""

import altair as alt
import pandas as pd

from dashboards.charts import palette
from dashboards.rows import rows_of

BAR_PX = 26


def choices(executions: pd.DataFrame) -> alt.LayerChart:
    """A bar for each graph and purpose, with its share and its executions in words."""
    rows = shares(executions)
    colours = palette.graph_colours(executions)
    # Told, because by itself a chart keeps bars where they first were while a cell runs.
    largest_first = alt.EncodingSortField("share", op="max", order="descending")
    base = alt.Chart(rows).encode(
        y=alt.Y("choice:N", sort=largest_first, title=None, axis=alt.Axis(labelLimit=180, ticks=False, domain=False)),
        x=alt.X(
            "share:Q",
            title="share of wall time (executions)",
            scale=alt.Scale(domain=[0, 1.3]),
            axis=alt.Axis(format=".0%", values=[0, 0.25, 0.5, 0.75, 1]),
        ),
        tooltip=[
            alt.Tooltip("graph:N"),
            alt.Tooltip("purpose:N"),
            alt.Tooltip("share:Q", title="share of wall time", format=".2%"),
            alt.Tooltip("wall_s:Q", title="wall time, s", format=".3f"),
            alt.Tooltip("executions:Q", format=","),
        ],
    )
    colour = alt.Color("graph:N", legend=None, scale=alt.Scale(domain=list(colours), range=list(colours.values())))
    chart: alt.LayerChart = alt.LayerChart(
        layer=[
            base.mark_bar().encode(color=colour),
            base.mark_text(align="left", dx=6, color=palette.INK).encode(text="words:N"),
        ]
    ).properties(height=alt.Step(BAR_PX), autosize=alt.AutoSizeParams(type="fit-x", contains="padding"))
    return chart


def shares(executions: pd.DataFrame) -> pd.DataFrame:
    """Wall time and executions of each graph and purpose, the largest share first."""
    grouped = executions.groupby(["graph_name", "graph_purpose"]).graph_wall_time_ns.agg(["sum", "count"])
    rows = grouped.sort_values("sum", ascending=False).reset_index()
    rows.columns = pd.Index(["graph", "purpose", "wall_ns", "executions"])
    rows["share"] = rows.wall_ns / max(rows.wall_ns.sum(), 1)
    rows["wall_s"] = rows.wall_ns / 1e9
    rows["choice"] = [named(row.graph, row.purpose) for row in rows_of(rows)]
    rows["words"] = [f"{100 * row.share:.1f} % ({row.executions:,})" for row in rows_of(rows)]
    return rows.drop(columns="wall_ns")


def named(graph: str, purpose: str) -> str:
    """A graph, and why it ran where that was not the ordinary choice."""
    return graph if purpose == "ordinary" else f"{graph} ({purpose.replace('_', ' ')})"
