"""How long the GPU idled before each execution."""

import altair as alt
import pandas as pd

from dashboards.charts import gpu_lanes, palette, times


def idle_gaps(drawn: pd.DataFrame, x_scale: alt.Scale) -> alt.LayerChart:
    """A spike for each idle gap; where the engine itself had no work, it is drawn in grey.

    Args:
        drawn: Rows of `cell_timeline.drawn_executions`.
        x_scale: The time scale that the panels share.
    """
    base = alt.Chart(drawn).encode(
        x=alt.X("gap_start_ms:T", scale=x_scale, axis=times.axis(labels=False)),
        tooltip=gpu_lanes.tooltip(),
        color=alt.condition("datum.after_idle", alt.value(palette.INK), alt.value(palette.FLAG)),
    )
    y = alt.Y("idle_gap_ms:Q", title="ms", axis=times.value_axis(tick_count=3))
    floor = alt.datum(0)
    chart: alt.LayerChart = alt.LayerChart(
        layer=[
            base.mark_rule(clip=True, strokeWidth=1.5).encode(y=y, y2=floor),
            base.mark_rect(clip=True, opacity=0.35).encode(y=y, y2=floor, x2="gpu_start_ms"),
        ]
    ).properties(height=70, title="GPU idle before each execution, ms")
    return chart
