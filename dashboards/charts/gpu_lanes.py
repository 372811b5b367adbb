"""When the GPU was busy, a lane for each graph; the empty time between is idle."""

import altair as alt
import pandas as pd

from dashboards.charts import palette, times

LANE_PX = 20
SELECTION = "clicked"
"""Name of the selection that a click on an execution makes; its field is `sequence`."""


def gpu_lanes(drawn: pd.DataFrame, colours: dict[str, str], x_scale: alt.Scale) -> alt.Chart:
    """A rectangle for each execution, from its start on the device to its end there.

    Args:
        drawn: Rows of `cell_timeline.drawn_executions`.
        colours: Of each graph, in the order of the lanes.
        x_scale: The time scale that the panels share.
    """
    clicked = alt.selection_point(name=SELECTION, fields=["sequence"], toggle=False)
    chart: alt.Chart = (
        alt.Chart(drawn, title="GPU busy, by graph (click one)", name="lanes")
        .mark_rect(clip=True, cursor="pointer")
        .encode(
            x=alt.X("gpu_start_ms:T", scale=x_scale, axis=times.axis(labels=False)),
            x2="gpu_end_ms",
            y=alt.Y("graph:N", sort=list(colours), title=None, axis=times.lane_axis()),
            color=alt.Color(
                "graph:N", scale=alt.Scale(domain=list(colours), range=list(colours.values())), legend=None
            ),
            stroke=alt.condition(clicked, alt.value(palette.FLAG), alt.value("transparent"), empty=False),
            tooltip=tooltip(),
        )
        .add_params(clicked)
        .properties(height=LANE_PX * max(len(colours), 1))
    )
    return chart


def tooltip() -> list[alt.Tooltip]:
    """What hovering over an execution tells."""
    return [
        alt.Tooltip("graph:N"),
        alt.Tooltip("purpose:N"),
        alt.Tooltip("sequence:Q", format="d"),
        alt.Tooltip("gpu_time_ms:Q", title="GPU time, ms", format=".3f"),
        alt.Tooltip("wall_time_ms:Q", title="wall time, ms", format=".3f"),
        alt.Tooltip("idle_gap_ms:Q", title="idle gap before it, ms", format=".3f"),
        alt.Tooltip("estimate_ms:Q", title="estimate, ms", format=".3f"),
        alt.Tooltip("queue_depth:Q", title="queue depth", format="d"),
        alt.Tooltip("tokens:Q", title="tokens emitted", format=",d"),
        *times.tooltip("submitted_ms", "submitted_utc", "submitted"),
    ]
