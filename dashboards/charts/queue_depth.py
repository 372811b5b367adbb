"""How many submissions were in flight at each submission; 0 is drained."""

import altair as alt
import pandas as pd

from dashboards.charts import gpu_lanes, palette, times


def queue_depth(drawn: pd.DataFrame, x_scale: alt.Scale) -> alt.Chart:
    """A step line over the submissions.

    Args:
        drawn: Rows of `cell_timeline.drawn_executions`.
        x_scale: The time scale that the panels share.
    """
    chart: alt.Chart = (
        alt.Chart(drawn, title="Queue depth at submission (0: drained)")
        .mark_line(interpolate="step-after", strokeWidth=1, color=palette.INK, clip=True)
        .encode(
            x=alt.X("submitted_ms:T", scale=x_scale, axis=times.axis(labels=False)),
            y=alt.Y("queue_depth:Q", title="submissions", axis=times.count_axis()),
            tooltip=gpu_lanes.tooltip(),
        )
        .properties(height=44)
    )
    return chart
