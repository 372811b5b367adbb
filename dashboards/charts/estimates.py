"""What the scheduler charged each graph, against what it cost: one panel a graph."""

from collections.abc import Iterator

import altair as alt
import pandas as pd

from dashboards.charts import gpu_lanes, palette, times

GRAPHS_MAX = 8
"""Panels drawn; the graphs that were candidates most often come first."""


def estimates(
    drawn: pd.DataFrame, candidates: pd.DataFrame, colours: dict[str, str], x_scale: alt.Scale
) -> Iterator[alt.LayerChart]:
    """A panel for each graph: a step line for the estimate (chosen or not), dots for measured GPU and wall times.

    Args:
        drawn: Rows of `cell_timeline.drawn_executions`.
        candidates: Rows of the query `candidates`; empty where the engine records none.
        colours: Of each graph.
        x_scale: The time scale that the panels share.
    """
    if candidates.empty:
        return
    lines = changes(candidates)
    counts = candidates.graph.value_counts()
    for number, graph in enumerate(sorted(counts.index[:GRAPHS_MAX])):
        last = number == min(len(counts), GRAPHS_MAX) - 1
        yield panel(
            graph,
            measured=drawn[drawn.graph == graph],
            estimate=lines[lines.graph == graph],
            colour=colours.get(graph, palette.INK),
            x_scale=x_scale,
            last=last,
        )


def changes(candidates: pd.DataFrame) -> pd.DataFrame:
    """The estimates where they change, and at the end: a step line needs no more."""
    ordered = candidates.sort_values(["graph", "started_at", "graph_sequence"])
    by_graph = ordered.groupby("graph").estimate_ns
    kept = ordered[(by_graph.shift() != ordered.estimate_ns) | (by_graph.shift(-1).isna())]
    return pd.DataFrame(
        {
            "graph": kept.graph,
            "at_ms": times.epoch_ms(kept.started_at),
            "at_utc": times.utc(kept.started_at),
            "estimate_ms": kept.estimate_ns / 1e6,
        }
    ).reset_index(drop=True)


def panel(
    graph: str, *, measured: pd.DataFrame, estimate: pd.DataFrame, colour: str, x_scale: alt.Scale, last: bool
) -> alt.LayerChart:
    """One graph's panel; it says so where the graph never ran in the cell."""
    never = " — not executed in this cell" if measured.empty else ""
    axis = times.axis(labels=last)
    x = alt.X("submitted_ms:T", scale=x_scale, axis=axis)
    y_axis = times.value_axis(tick_count=4)
    dots = alt.Chart(measured).encode(x=x, tooltip=gpu_lanes.tooltip())
    scale = alt.Scale(zero=False, nice=True)
    chart: alt.LayerChart = alt.LayerChart(
        layer=[
            dots.mark_point(filled=False, size=28, strokeWidth=1.2, color=palette.INK, clip=True).encode(
                y=alt.Y("wall_time_ms:Q", title="ms", scale=scale, axis=y_axis)
            ),
            dots.mark_circle(size=14, color=colour, opacity=0.55, clip=True).encode(
                y=alt.Y("gpu_time_ms:Q", title="ms", scale=scale, axis=y_axis)
            ),
            alt.Chart(estimate)
            .mark_line(interpolate="step-after", color=palette.FLAG, strokeWidth=2, clip=True)
            .encode(
                x=alt.X("at_ms:T", scale=x_scale, axis=axis),
                y=alt.Y("estimate_ms:Q", title="ms", scale=scale, axis=y_axis),
                tooltip=[
                    alt.Tooltip("estimate_ms:Q", title="estimate, ms", format=".3f"),
                    *times.tooltip("at_ms", "at_utc", "from"),
                ],
            ),
        ]
    ).properties(height=90, title=f"{graph}: estimate (line), GPU time (dots), wall time (rings), ms{never}")
    return chart
