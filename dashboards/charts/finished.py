"""A chart made ready once, to be shown many times.

Building a chart and checking it against Vega-Lite's schema takes up to half a second of one core; handing a finished
one to a browser takes some milliseconds.
"""

from collections.abc import Iterator
from typing import Any, TypeAlias

import altair as alt
import pandas as pd

Chart: TypeAlias = alt.Chart | alt.LayerChart | alt.VConcatChart
Finished: TypeAlias = dict[str, Any]
"""A Vega-Lite specification whose `datasets` are data frames by name."""
ALTAIRS_OWN = ("continuousWidth", "continuousHeight")
"""Sizes that Altair's theme sets, and that would keep a chart from filling its page."""


def finished(chart: Chart) -> Finished:
    """The chart as Streamlit's `vega_lite_chart` takes it. The chart itself is used up.

    Data frames leave the chart before it is written down: what Altair would do with them depends on a setting of the
    whole process, which Streamlit changes for moments while other threads draw.
    """
    frames: dict[str, pd.DataFrame] = {}
    for part in parts_of(chart):
        if isinstance(part.data, pd.DataFrame):
            part.data = alt.NamedData(name_of(part.data, frames))
    spec: Finished = chart.to_dict()
    for name in ALTAIRS_OWN:
        spec.get("config", {}).get("view", {}).pop(name, None)
    return spec | {"datasets": frames}


def parts_of(chart: Any) -> Iterator[Any]:
    """The chart, and every chart that it is put together from."""
    yield chart
    for kind in ("layer", "vconcat"):
        parts: Any = getattr(chart, kind, alt.Undefined)
        for part in [] if parts is alt.Undefined else parts:
            yield from parts_of(part)


def name_of(frame: pd.DataFrame, frames: dict[str, pd.DataFrame]) -> str:
    """The name under which a frame is kept; one that several parts draw is kept once."""
    for name, kept in frames.items():
        if kept is frame:
            return name
    name = f"data-{len(frames)}"
    frames[name] = frame
    return name
