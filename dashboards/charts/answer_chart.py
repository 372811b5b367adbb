"""Any answer as a chart: two of its columns, told apart by a third."""

from collections.abc import Sequence
from typing import Any, Literal

import altair as alt
import pandas as pd

from dashboards.charts import palette, times
from dashboards.questions.columns import figures
from dashboards.questions.columns import times as time_columns
from dashboards.words.texts import utc_text

Mark = Literal["points", "line", "bars"]
MARKS: tuple[Mark, ...] = ("points", "line", "bars")
GROUPS_MAX = 12
"""Groups told apart by colour and shape; further ones are drawn as one."""
OTHERS = "others"
HEIGHT_PX = 380
COLOURS = ["#2f7fc1", "#d9480f", "#2a9d6f", "#7a6bd0", "#d4a514", "#c2599d", "#36b3b0", "#8d8d95"]
SHAPES = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down"]
DASHES = [[1, 0], [6, 3], [2, 2], [8, 3, 2, 3]]

NAMES_LABELLED_MAX = 12
"""Names along an axis that all have their label."""
LETTER_PX = 9
"""A letter of a label, at most."""


def answer_chart(
    rows: pd.DataFrame,
    across: str,
    up: str,
    by: str = "",
    mark: Mark = "points",
    *,
    units: dict[str, str] | None = None,
) -> alt.Chart:
    """Draw an answer.

    Args:
        rows: The answer; instants in UTC.
        across: Column along the horizontal axis.
        up: Column of figures along the vertical axis.
        by: Column that tells groups apart; '' is none.
        mark: How.
        units: Column to unit, for the axes.
    """
    drawn, tooltip = drawn_rows(rows, across, up, by)
    encoding: dict[str, Any] = {
        "x": horizontal(rows, across, units or {}),
        "y": alt.Y("up:Q", title=titled(up, units or {}), axis=alt.Axis(format=",~f")),
        "tooltip": tooltip,
    }
    if by:
        encoding |= groups(by, mark)
    chart: alt.Chart = marked(alt.Chart(drawn), mark, coloured=bool(by)).encode(**encoding).properties(height=HEIGHT_PX)
    return chart


def drawn_rows(rows: pd.DataFrame, across: str, up: str, by: str) -> tuple[pd.DataFrame, list[alt.Tooltip]]:
    """What the chart draws, under names that no column's own can confuse, and what hovering tells."""
    drawn = pd.DataFrame({"up": rows[up].astype("float64")})
    tooltip = [alt.Tooltip("up:Q", title=up, format=",")]
    if across in time_columns(rows):
        drawn["across"] = times.epoch_ms(rows[across].fillna(pd.Timestamp(0, tz="UTC"))).where(rows[across].notna())
        drawn["across_utc"] = ["" if pd.isna(instant) else utc_text(instant) for instant in rows[across]]
        tooltip += times.tooltip("across", "across_utc", across)
    else:
        drawn["across"] = rows[across].astype("float64" if across in figures(rows) else "str")
        tooltip.append(alt.Tooltip("across", title=across))
    if by:
        names = rows[by].astype("str")
        kept = names.value_counts().index[:GROUPS_MAX]
        drawn["by"] = names.where(names.isin(kept), OTHERS)
        tooltip.append(alt.Tooltip("by:N", title=by))
    return drawn, tooltip


def horizontal(rows: pd.DataFrame, across: str, units: dict[str, str]) -> alt.X:
    """The horizontal axis, by what its column holds."""
    if across in time_columns(rows):
        return alt.X("across:T", title=across, axis=times.axis(), scale=alt.Scale(nice=False, padding=8))
    if across in figures(rows):
        return alt.X("across:Q", title=titled(across, units), scale=alt.Scale(zero=False, padding=8))
    return alt.X("across:N", title=across, sort=None, axis=name_axis(list(rows[across].astype("str").unique())))


def name_axis(names: Sequence[str]) -> alt.Axis:
    """An axis of names: each has its label, unless they are too many for a telephone; aslant where it is narrow."""
    needed_px = len(names) * (LETTER_PX * max(map(len, names), default=0) + LETTER_PX)
    angle = alt.ExprRef(f"containerSize()[0] < {needed_px} ? -40 : 0")
    return alt.Axis(labelLimit=160, labelAngle=angle, labelOverlap=len(names) > NAMES_LABELLED_MAX)


def titled(column: str, units: dict[str, str]) -> str:
    """A column with its unit."""
    unit = units.get(column, "")
    return f"{column} [{unit}]" if unit else column


def groups(by: str, mark: Mark) -> dict[str, Any]:
    """Groups by colour, and by shape or dash as well: never colour alone."""
    told: dict[str, Any] = {"color": alt.Color("by:N", title=by, scale=alt.Scale(range=COLOURS))}
    if mark == "points":
        told["shape"] = alt.Shape("by:N", title=by, scale=alt.Scale(range=SHAPES))
    elif mark == "line":
        told["strokeDash"] = alt.StrokeDash("by:N", title=by, scale=alt.Scale(range=DASHES))
    return told


def marked(chart: alt.Chart, mark: Mark, coloured: bool) -> alt.Chart:
    """The chart's mark; one colour where nothing tells groups apart."""
    colour: dict[str, Any] = {} if coloured else {"color": palette.SHADES["speculative"][0]}
    drawn: alt.Chart
    if mark == "line":
        drawn = chart.mark_line(point={"size": 20}, **colour)
    elif mark == "bars":
        drawn = chart.mark_bar(**colour)
    else:
        drawn = chart.mark_point(filled=True, size=70, opacity=0.8, **colour)
    return drawn
