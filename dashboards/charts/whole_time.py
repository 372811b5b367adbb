"""Panels one below the other begin and end at the same instants, whatever each of them draws."""

from collections.abc import Iterable, Iterator
from typing import Any

import altair as alt
import pandas as pd

from dashboards.charts.finished import parts_of


def from_end_to_end(
    panels: Iterable[alt.Chart | alt.LayerChart], since_ms: float, until_ms: float
) -> Iterator[alt.LayerChart]:
    """The panels, their time axes from end to end where nothing is brushed: by itself each ends with what it draws.

    The ends are data and no domain, or the chart of a running cell would be another one at each refresh.

    Args:
        panels: Each with a time axis of its own; used up.
        since_ms, until_ms: The ends, in Unix milliseconds; nothing that is drawn lies beyond.
    """
    ends = pd.DataFrame({"end_ms": [since_ms, until_ms]})
    for panel in panels:
        # Its own axis: where layers differ in that, both are drawn.
        x = next(x for part in parts_of(panel) if (x := time_of(part)) is not None).copy(deep=False)
        x.shorthand = "end_ms:T"
        title, panel.title = panel.title, alt.Undefined
        unseen = alt.Chart(ends).mark_point(opacity=0, aria=False, tooltip=None).encode(x=x)
        yield (panel + unseen).properties(title=title)


def time_of(part: Any) -> Any | None:
    """A part's time axis; None where it has none."""
    encoding: Any = getattr(part, "encoding", alt.Undefined)
    x = alt.Undefined if encoding is alt.Undefined else encoding.x
    return None if x is alt.Undefined else x
