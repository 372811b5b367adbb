"""Time in charts: axes in the viewer's zone, UTC on hover.

Instants go to the browser as Unix milliseconds with a fraction, which Vega shows in the browser's own
zone and which keep the microseconds that a timestamp would lose on the way.
"""

from datetime import UTC
from typing import Any, Literal

import altair as alt
import numpy as np
import pandas as pd

HOVER_FORMAT = "%Y-%m-%d %H:%M:%S.%L"
AXIS_FORMAT = {"milliseconds": ":%S.%L", "seconds": ":%S", "minutes": "%H:%M", "hours": "%H:%M"} | dict.fromkeys(
    ("date", "week", "month", "quarter", "year"), "%d %b"
)
"""By the finest unit of the label. Vega would count hours to twelve, and call the midnight that a month begins with by the month."""
AXIS_WIDTH_PX = 84
TICKS = alt.ExprRef("containerSize()[0] < 520 ? 4 : 8")
"""About so many; fewer on a telephone, where else every second label would be left out, and with them the dates."""
LINE_PX = 14
"""Height of a line of a label."""
PANEL_AXIS: dict[str, Any] = {
    "minExtent": AXIS_WIDTH_PX,
    "maxExtent": AXIS_WIDTH_PX,
    "labelLimit": AXIS_WIDTH_PX - 8,
    "titlePadding": -12,
    "grid": True,
}
"""Vertical axes take the same room in every panel, so that the plotting areas are flush."""


def epoch_ms(instants: "pd.Series[pd.Timestamp]") -> "pd.Series[float]":
    """Unix milliseconds, to the microsecond."""
    return instants.astype("datetime64[ns, UTC]").astype("int64") / 1e6


def utc(instants: "pd.Series[pd.Timestamp]") -> list[str]:
    """The same instants as UTC text, each as `utc_text` has it."""
    texts = np.datetime_as_string(instants.dt.tz_convert(UTC).dt.tz_localize(None).to_numpy("datetime64[ms]"))
    return [f"{text.replace('T', ' ')} UTC" for text in texts]


def axis(orient: Literal["top", "bottom"] = "bottom", labels: bool = True) -> alt.Axis:
    """A time axis in the viewer's zone."""
    return alt.Axis(
        orient=orient,
        labels=labels,
        ticks=labels,
        labelOverlap=True,
        labelPadding=4,
        tickCount=TICKS,
        grid=True,
        title=None,
        format=AXIS_FORMAT,
    )


def tooltip(local: str, utc_column: str, title: str) -> list[alt.Tooltip]:
    """An instant twice: in the viewer's zone and in UTC."""
    return [
        alt.Tooltip(f"{local}:T", title=f"{title}, here", format=HOVER_FORMAT),
        alt.Tooltip(f"{utc_column}:N", title=f"{title}, UTC"),
    ]


def lines(count: int) -> dict[str, Any]:
    """Options of a vertical axis whose labels have so many lines: Vega sets the first line beside the row's middle."""
    return {"labelLineHeight": LINE_PX, "labelOffset": -LINE_PX * (count - 1) / 2}


def value_axis(tick_count: int = 4) -> alt.Axis:
    """A vertical axis of figures."""
    return alt.Axis(tickCount=tick_count, format=",~f", **PANEL_AXIS)


def count_axis() -> alt.Axis:
    """A vertical axis of whole numbers."""
    return alt.Axis(tickCount=2, tickMinStep=1, format="d", **PANEL_AXIS)


def lane_axis() -> alt.Axis:
    """A vertical axis of names."""
    return alt.Axis(domain=False, ticks=False, **PANEL_AXIS | {"grid": False})


def zoomed(brush: alt.Parameter) -> alt.Scale:
    """The time scale of panels that show what is brushed in the overview."""
    return alt.Scale(domain=brush, nice=False)
