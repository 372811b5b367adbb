"""How one graph's times are spread on each host and package: quantiles over single executions, not means."""

from typing import Final, NamedTuple

import altair as alt
import pandas as pd

from dashboards.charts import palette, series_colours, times
from dashboards.questions.measures import series_named

ROW_PX = 34
LABEL_PX = 130
ROWS_MAX = 12
"""Hosts and packages drawn; those with the most executions come first."""


class Spread(NamedTuple):
    """Which quantiles are drawn: a bar from `low` to `high`, a line on to `far`, the series' own mark at the `median`."""

    low: str
    median: str
    high: str
    far: str
    words: str


GPU_TIME: Final = Spread(
    "gpu_time_p10_ns", "gpu_time_median_ns", "gpu_time_p90_ns", "gpu_time_p99_ns", "10th to 90th and 99th percentile"
)
HANDOFF: Final = Spread(
    "handoff_median_ns", "handoff_median_ns", "handoff_p90_ns", "handoff_p99_ns", "median to 90th and 99th percentile"
)


def graph_spread(rows: pd.DataFrame, named: list[str], spread: Spread, words: str) -> alt.LayerChart:
    """The chart.

    Args:
        rows: Of one graph, from `graph_costs` or `handoffs`; at least one.
        named: Series with a colour of their own.
        spread: The columns.
        words: What is measured.
    """
    drawn = drawn_rows(rows, named, spread)
    names = series_colours.domain(drawn.shown, named)
    base = alt.Chart(drawn).encode(
        y=alt.Y(
            "series:N",
            title=None,
            sort=None,
            axis=alt.Axis(
                labelExpr="split(datum.label, ' · ')", labelLimit=LABEL_PX, ticks=False, domain=False, **times.lines(2)
            ),
        ),
        color=alt.Color("shown:N", scale=series_colours.colour_scale(names), legend=None),
        tooltip=tooltip(words, spread),
    )
    x = alt.X(
        "low_ms:Q", title=f"{words}, ms", scale=alt.Scale(zero=False), axis=alt.Axis(tickCount=4, labelOverlap=True)
    )
    chart: alt.LayerChart = alt.LayerChart(
        layer=[
            base.mark_bar(height=12, opacity=0.55).encode(x=x, x2="high_ms"),
            base.mark_rule(strokeWidth=1.5).encode(x=alt.X("high_ms:Q"), x2="far_ms"),
            base.mark_point(filled=True, size=80, opacity=1).encode(
                x=alt.X("median_ms:Q"), shape=alt.Shape("shown:N", scale=series_colours.shape_scale(names), legend=None)
            ),
            *estimate_layers(base, drawn),
        ]
    ).properties(height=alt.Step(ROW_PX), autosize=alt.AutoSizeParams(type="fit-x", contains="padding"))
    return chart


def estimate_layers(base: alt.Chart, drawn: pd.DataFrame) -> list[alt.Chart]:
    """A mark at each mean estimate; none where none is known."""
    if drawn.estimate_ms.isna().all():
        return []
    points = base.mark_point(filled=False, shape="diamond", size=70, strokeWidth=2, color=palette.FLAG)
    return [points.encode(x=alt.X("estimate_ms:Q"), color=alt.value(palette.FLAG))]


def drawn_rows(rows: pd.DataFrame, named: list[str], spread: Spread) -> pd.DataFrame:
    """What is drawn, in ms; the estimate only beside GPU times."""
    count = "executions" if "executions" in rows else "drained_executions"
    kept = rows.sort_values(count, ascending=False).head(ROWS_MAX)
    series = series_named(kept.host_name.astype(str), kept.engine_package.astype(str))
    estimate = kept.estimate_mean_ns if "estimate_mean_ns" in kept else pd.Series(float("nan"), index=kept.index)
    return pd.DataFrame(
        {
            "series": series,
            "shown": series_colours.coloured(series, named),
            "low_ms": kept[spread.low].astype("float64") / 1e6,
            "median_ms": kept[spread.median].astype("float64") / 1e6,
            "high_ms": kept[spread.high].astype("float64") / 1e6,
            "far_ms": kept[spread.far].astype("float64") / 1e6,
            "estimate_ms": estimate.astype("float64") / 1e6,
            "executions": kept[count],
        }
    ).sort_values("series")


def tooltip(words: str, spread: Spread) -> list[alt.Tooltip]:
    """What hovering over a row tells."""
    return [
        alt.Tooltip("series:N", title="host, package"),
        alt.Tooltip("median_ms:Q", title=f"median {words}, ms", format=".3f"),
        alt.Tooltip("low_ms:Q", title=f"{spread.words}, ms", format=".3f"),
        alt.Tooltip("high_ms:Q", title="90th, ms", format=".3f"),
        alt.Tooltip("far_ms:Q", title="99th, ms", format=".3f"),
        alt.Tooltip("estimate_ms:Q", title="mean estimate, ms", format=".3f"),
        alt.Tooltip("executions:Q", format=","),
    ]
