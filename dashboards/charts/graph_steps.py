"""One graph over time: a point for each step of each engine, so that drift and outliers are seen, and changes marked."""

from collections.abc import Iterable, Sequence

import altair as alt
import pandas as pd

from dashboards.charts import notes, palette, series_colours, times
from queries.annotations.marks import Mark
from queries.changes.found import Change

HEIGHT_PX = 190


def graph_steps(
    steps: pd.DataFrame, named: list[str], changes: Sequence[Change], words: str, noted: Iterable[Mark] = ()
) -> alt.LayerChart:
    """The chart.

    Args:
        steps: Of one graph, as `measures.steps_of` has them; at least one.
        named: Series with a colour and shape of their own.
        changes: Of this graph; each is a line across, with its host and size.
        words: What is measured.
        noted: What people noted.
    """
    rows = drawn_steps(steps, named)
    names = series_colours.domain(rows.shown, named)
    x = time_channel("at_ms")
    y = alt.Y(
        "value_ms:Q",
        title=f"{words}, ms",
        scale=alt.Scale(zero=False, nice=True),
        axis=alt.Axis(tickCount=5, minExtent=48),
    )
    colour = alt.Color("shown:N", scale=series_colours.colour_scale(names), legend=None)
    points = (
        alt.Chart(rows)
        .mark_point(filled=True, size=34, opacity=0.75)
        .encode(
            x=x,
            y=y,
            color=colour,
            shape=alt.Shape("shown:N", scale=series_colours.shape_scale(names), legend=None),
            tooltip=tooltip(words),
        )
    )
    lines = alt.Chart(rows).mark_line(strokeWidth=1, opacity=0.45).encode(x=x, y=y, color=colour, detail="instance:N")
    noted_rows = notes.note_rows(noted, rows.at_ms.min(), rows.at_ms.max())
    chart: alt.LayerChart = alt.LayerChart(
        layer=[
            lines,
            points,
            *change_layers(changes),
            *notes.note_layers(noted_rows, time_channel),
        ]
    ).properties(height=HEIGHT_PX, autosize=alt.AutoSizeParams(type="fit-x", contains="padding"))
    return chart


def time_channel(column: str) -> alt.X:
    """The time axis, the same in every layer."""
    return alt.X(f"{column}:T", title=None, axis=times.axis(), scale=alt.Scale(nice=False, padding=6))


def drawn_steps(steps: pd.DataFrame, named: list[str]) -> pd.DataFrame:
    """What is drawn of the steps."""
    return pd.DataFrame(
        {
            "at_ms": times.epoch_ms(steps["at"]),
            "at_utc": times.utc(steps["at"]),
            "value_ms": steps.value_ms,
            "series": steps.series,
            "shown": series_colours.coloured(steps.series, named),
            "instance": steps.instance,
            "executions": steps.executions,
        }
    ).reset_index(drop=True)


def change_layers(changes: Sequence[Change]) -> list[alt.Chart]:
    """A line across at each change, with its words; none where nothing changed."""
    if not changes:
        return []
    marks = alt.Chart(change_rows(changes)).encode(x=time_channel("at_ms"))
    words = marks.mark_text(color=palette.FLAG, align="right", dx=-5, baseline="top", fontSize=11)
    return [
        marks.mark_rule(color=palette.FLAG, strokeWidth=1.5, strokeDash=[5, 3]).encode(tooltip=change_tooltip()),
        words.encode(y=alt.value(2), text="words:N"),
    ]


def change_rows(changes: Sequence[Change]) -> pd.DataFrame:
    """A row for each change."""
    at = pd.Series([change.at for change in changes], dtype="datetime64[ns, UTC]")
    return pd.DataFrame(
        {
            "at_ms": times.epoch_ms(at),
            "at_utc": times.utc(at),
            "words": [f"{change.labels[0]} {change.point.shift_percent:+.1f} %" for change in changes],
        }
    )


def tooltip(words: str) -> list[alt.Tooltip]:
    """What hovering over a step tells."""
    return [
        alt.Tooltip("series:N", title="host, package"),
        alt.Tooltip("value_ms:Q", title=f"{words}, ms", format=".3f"),
        alt.Tooltip("executions:Q", format=","),
        alt.Tooltip("instance:N"),
        *times.tooltip("at_ms", "at_utc", "step"),
    ]


def change_tooltip() -> list[alt.Tooltip]:
    """What hovering over a change tells."""
    return [alt.Tooltip("words:N", title="change"), *times.tooltip("at_ms", "at_utc", "since")]
