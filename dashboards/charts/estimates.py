"""What the scheduler charged each graph, against what it cost: one panel a graph."""

from collections.abc import Iterator, Sequence

import altair as alt
import pandas as pd

from dashboards.charts import gpu_lanes, palette, times
from queries.findings.findings import Poison

GRAPHS_MAX = 8
"""Panels drawn; the graphs that were candidates most often come first."""


def estimates(
    drawn: pd.DataFrame,
    candidates: pd.DataFrame,
    poisons: Sequence[Poison],
    colours: dict[str, str],
    x_scale: alt.Scale,
) -> Iterator[alt.LayerChart]:
    """A panel for each graph: a step line for the estimate (chosen or not), dots for measured GPU and wall times.

    Args:
        drawn: Rows of `cell_timeline.drawn_executions`.
        candidates: Rows of the query `candidates`; at least one.
        poisons: Executions to mark, in the panel of their graph.
        colours: Of each graph.
        x_scale: The time scale that the panels share.
    """
    lines = changes(candidates)
    counts = candidates.graph.value_counts()
    for number, graph in enumerate(sorted(counts.index[:GRAPHS_MAX])):
        last = number == min(len(counts), GRAPHS_MAX) - 1
        yield panel(
            graph,
            measured=drawn[drawn.graph == graph],
            estimate=lines[lines.graph == graph],
            poisoned=poisoned(drawn, [poison for poison in poisons if poison.graph == graph]),
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


def poisoned(drawn: pd.DataFrame, poisons: Sequence[Poison]) -> pd.DataFrame:
    """Where executions are marked that lifted their graph's estimate, and what is said of them on hovering.

    The mark stands at the estimate that it left behind. One that was never recorded is marked at the first decision
    that knew of it. The one that lifted it most bears its sequence: together they would cover each other's.
    """
    worst = max(poisons, key=lambda poison: poison.lift_ns, default=None)
    submitted_ms = dict(zip(drawn.sequence, drawn.submitted_ms, strict=True))
    rows = [
        {
            "poison_ms": submitted_ms.get(poison.sequence, poison.at_ns / 1e6),
            "level_ms": poison.estimate_after_ns / 1e6,
            "name": "not recorded" if poison.sequence is None else f"#{poison.sequence}",
            "words": "" if poison is not worst else poison_words(poison),
            "gpu_time_ms": None if poison.gpu_time_ns is None else poison.gpu_time_ns / 1e6,
            "wall_time_ms": None if poison.wall_time_ns is None else poison.wall_time_ns / 1e6,
            "before_ms": poison.estimate_before_ns / 1e6,
            "after_ms": poison.estimate_after_ns / 1e6,
        }
        for poison in poisons
    ]
    columns = ["poison_ms", "level_ms", "name", "words", "gpu_time_ms", "wall_time_ms", "before_ms", "after_ms"]
    return pd.DataFrame(rows, columns=columns)


def panel(
    graph: str,
    *,
    measured: pd.DataFrame,
    estimate: pd.DataFrame,
    poisoned: pd.DataFrame,
    colour: str,
    x_scale: alt.Scale,
    last: bool,
) -> alt.LayerChart:
    """One graph's panel; it says so where the graph never ran in the cell."""
    never = " (not executed here)" if measured.empty else ""
    axis = times.axis(labels=last)
    x = alt.X("submitted_ms:T", scale=x_scale, axis=axis)
    y_axis = times.value_axis(tick_count=4)
    dots = alt.Chart(measured).encode(x=x, tooltip=gpu_lanes.tooltip())
    scale = alt.Scale(zero=False, nice=True)
    marks = alt.Chart(poisoned).encode(
        x=alt.X("poison_ms:T", scale=x_scale, axis=axis),
        y=alt.Y("level_ms:Q", title="ms", scale=scale, axis=y_axis),
        tooltip=poison_tooltip(),
    )
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
            marks.mark_point(
                shape="triangle-up", filled=True, size=110, color=palette.FLAG, opacity=1, clip=True, yOffset=8
            ),
            marks.mark_text(align="left", dx=9, dy=11, color=palette.FLAG, fontSize=12, clip=True).encode(
                text="words:N"
            ),
        ]
    ).properties(height=90, title=f"{graph}: estimate against cost, ms{never}")
    return chart


def poison_words(poison: Poison) -> str:
    """What stands beside the mark."""
    return "lifted by one not recorded" if poison.sequence is None else f"lifted by #{poison.sequence}"


def poison_tooltip() -> list[alt.Tooltip]:
    """What hovering over a mark tells."""
    return [
        alt.Tooltip("name:N", title="lifted the estimate"),
        alt.Tooltip("gpu_time_ms:Q", title="GPU time, ms", format=".3f"),
        alt.Tooltip("wall_time_ms:Q", title="wall time, ms", format=".3f"),
        alt.Tooltip("before_ms:Q", title="estimate before, ms", format=".3f"),
        alt.Tooltip("after_ms:Q", title="estimate after, ms", format=".3f"),
    ]
