"""What people noted, on a time axis: a line at each mark, with its words on hover and where there is room."""

from collections.abc import Callable, Iterable

import altair as alt
import pandas as pd

from dashboards.charts import palette, times
from dashboards.words.texts import utc_text
from queries.annotations.marks import Mark

SIGN = "▼"
WORDS_LIMIT_PX = 220
DARK, LIGHT = "#1c1c1c", "#ffffff"
"""Dark dashes on a light line: seen on every colour of a cell and on both grounds."""


def note_rows(marks: Iterable[Mark], since_ms: float, until_ms: float) -> pd.DataFrame:
    """The marks of a stretch of time, as the layers draw them; others would stretch the axis.

    Args:
        marks: In any order.
        since_ms, until_ms: What the axis shows, in Unix milliseconds.
    """
    rows = [
        {
            "noted_ms": mark.at.timestamp() * 1000,
            "noted_utc": utc_text(pd.Timestamp(mark.at)),
            "noted": mark.text,
            "about": mark.about or "every engine",
            "author": mark.author,
        }
        for mark in marks
    ]
    table = pd.DataFrame(rows, columns=["noted_ms", "noted_utc", "noted", "about", "author"])
    return table[table.noted_ms.between(since_ms, until_ms)].reset_index(drop=True)


def note_layers(notes: pd.DataFrame, x: Callable[[str], alt.X]) -> list[alt.Chart]:
    """Layers for a chart that has a time axis; none where nothing was noted.

    Args:
        notes: Of `note_rows`.
        x: The chart's own time axis over a column.
    """
    return [] if notes.empty else layers_of(notes, x)


def layers_of(notes: pd.DataFrame | alt.NamedData, x: Callable[[str], alt.X]) -> list[alt.Chart]:
    """The same of notes that are there, or that will be there under a name."""
    base = alt.Chart(notes).encode(x=x("noted_ms"), tooltip=tooltip())
    return [
        base.mark_rule(strokeWidth=3, color=LIGHT, opacity=0.8, clip=True),
        base.mark_rule(strokeWidth=1.5, color=DARK, strokeDash=[4, 3], clip=True),
        base.mark_text(text=SIGN, fontSize=14, baseline="top", color=DARK, stroke=LIGHT, strokeWidth=0.6).encode(
            y=alt.value(1)
        ),
    ]


def notes_panel(notes: pd.DataFrame, x_scale: alt.Scale) -> alt.LayerChart:
    """A panel of its own, with the words, among panels that share a time scale.

    Args:
        notes: Of `note_rows`, at least one.
        x_scale: The time scale that the panels share.
    """

    def x(column: str) -> alt.X:
        return alt.X(f"{column}:T", scale=x_scale, axis=times.axis(labels=False))

    words = (
        alt.Chart(notes)
        .mark_text(align="left", dx=9, baseline="middle", limit=WORDS_LIMIT_PX, color=palette.INK, clip=True)
        .encode(x=x("noted_ms"), y=alt.value(11), text="noted:N", tooltip=tooltip())
    )
    layers = [*note_layers(notes, x), words]
    chart: alt.LayerChart = alt.LayerChart(layer=layers).properties(height=22, title="What was noted")
    return chart


def tooltip() -> list[alt.Tooltip]:
    """What hovering over a mark tells."""
    return [
        alt.Tooltip("noted:N"),
        alt.Tooltip("about:N"),
        alt.Tooltip("author:N", title="by"),
        *times.tooltip("noted_ms", "noted_utc", "at"),
    ]
