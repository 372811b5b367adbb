"""The fleet at a glance: one row an engine, time to the right, each cell coloured by its plain fraction."""

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple, TypeAlias

import altair as alt
import pandas as pd

from dashboards.charts import notes, palette, times
from dashboards.charts.finished import Finished, finished
from dashboards.questions.arrivals import clocks_ahead_s, gone_after_s, seen_at
from dashboards.rows import Row, rows_of
from dashboards.words.texts import engine_label, short_instance
from queries.annotations.marks import Mark
from queries.clocks_ahead import age_of, clock_words

SELECTION = "cell"
"""Name of the selection that a click on a cell makes; its fields are `service_instance_id` and `cell`."""
NARROW_PX = 520
"""In a grid narrower than this (a telephone's), names are cut to what tells engines apart, and cells bear no words, in px."""
NARROW_LETTERS = 14
HOST_LETTERS, RECIPE_LETTERS = 28, 42
"""In a wider grid: of a host there is room for as many, beside its instance, and of package and recipe."""
NARROW_HOST_LETTERS, NARROW_INSTANCE_LETTERS = 5, 7
"""Of each where a host has several engines and a row has one line."""
NARROWEST_PX = 2
"""A cell is drawn at least so wide, or those of an old import would vanish from the chart of all time, in px."""
LONE_PX, ALONE_PX = 5, 24
"""A narrower cell that has no other so near is drawn so wide on every screen, so that it is seen and can be clicked, in px."""
SHORT_WORD_PX, LONG_WORD_PX = 14, 66
"""A cell at least this wide bears a letter, or the whole word, in px."""
LEGEND_PX = alt.ExprRef(f"containerSize()[0] < {NARROW_PX} ? 180 : 260")
"""On a telephone the legend's labels must fit too."""
TYPICAL_WIDTH_PX = 1000
"""Width of the grid on an ordinary screen, in px; only decides how much text a cell can bear."""
LOST = [alt.Tooltip("executions_lost:Q", title="executions lost", format=",")]
OF_STRETCH = [
    alt.Tooltip("cells:Q", format=","),
    alt.Tooltip("cells_stuck:Q", title="cells stuck", format=","),
    alt.Tooltip("cell:N", title="its worst cell"),
]
NAMES = ["service_instance_id", "host_name", "engine_package", "engine_recipe"]
NAME_ORDER = [*NAMES[1:], NAMES[0]]
CELLS, NOTED = "cells", "noted"
"""What the data of a grid is called in its specification."""
Data: TypeAlias = pd.DataFrame | alt.NamedData
SEPARATOR = "\u2063"
"""Between the parts of a row's name. Invisible, so no label of an engine contains it."""


class RowSize(NamedTuple):
    """How high a row is."""

    height_px: int
    lines: int
    """Of its name."""


ROOMY, COMPACT = RowSize(44, 2), RowSize(18, 1)


class Shown(NamedTuple):
    """What the grid of certain rows has to show: each layer is drawn anew for all rows, whether it shows any or none."""

    has_losses: bool
    """Rows are cells, whose lost executions are known; else stretches."""
    has_lone: bool = False
    has_clocks: bool = False

    @classmethod
    def of(cls, cells: pd.DataFrame, rows: pd.DataFrame) -> "Shown":
        """Of rows of a query, and what `grid_rows` made of them."""
        return cls("executions_lost" in cells, bool(rows.lone.any()), bool((rows.clock != "").any()))


def fleet_grid(
    cells: pd.DataFrame, engines: Sequence[str] | None = None, size: RowSize = ROOMY, marks: Iterable[Mark] = ()
) -> alt.LayerChart:
    """The grid. Clicking a cell selects it (`SELECTION`).

    Args:
        cells: Rows of the query `cells`, or of `fleet_stretches`.
        engines: The instances, in the order of their rows; without it, by name.
        size: How high a row is.
        marks: What people noted.
    """
    rows = grid_rows(cells, engines)
    noted = noted_within(rows, marks)
    return layered(rows, None if noted.empty else noted, size, Shown.of(cells, rows))


def finished_grid(cells: pd.DataFrame, engines: Sequence[str], size: RowSize, marks: Iterable[Mark]) -> Finished:
    """The same, made ready: only its data is new every two seconds, so the rest is written down once for all."""
    rows = grid_rows(cells, engines)
    noted = noted_within(rows, marks)
    datasets = {CELLS: rows} if noted.empty else {CELLS: rows, NOTED: noted}
    return template(size, Shown.of(cells, rows), has_notes=not noted.empty) | {"datasets": datasets}


@cache
def template(size: RowSize, shown: Shown, *, has_notes: bool) -> Finished:
    """The grid without its data."""
    noted = alt.NamedData(NOTED) if has_notes else None
    return finished(layered(alt.NamedData(CELLS), noted, size, shown))


def noted_within(rows: pd.DataFrame, marks: Iterable[Mark]) -> pd.DataFrame:
    """What people noted in the time that the grid shows."""
    return notes.note_rows(marks, rows.start_ms.min(), rows.end_ms.max())


def layered(rows: Data, noted: Data | None, size: RowSize, shown: Shown) -> alt.LayerChart:
    """The grid of these rows, with a line at each mark, if there is any."""
    chart = alt.Chart(rows).encode(tooltip=tooltip(shown.has_losses))
    base = chart.encode(x=time_channel("start_ms"), x2="end_ms")
    left, right, bare = (row_channel(axis) for axis in (left_axis(size), right_axis(), None))
    chosen = alt.selection_point(name=SELECTION, fields=["service_instance_id", "cell"], toggle=False)
    drawn: alt.LayerChart = (
        alt.layer(
            base.mark_rect(cursor="pointer", stroke="transparent")
            .encode(y=left, color=fraction_colour())
            .add_params(chosen),
            *([lone_cells(chart, bare, size)] if shown.has_lone else []),
            strip(base, right, "stuck", -1, size),
            strip(base, bare, "inflated", 1, size),
            words(chart, bare, size),
            *([] if noted is None else notes.layers_of(noted, time_channel)),
            *([clocks(chart, bare, size)] if shown.has_clocks else []),
        )
        .resolve_axis(y="independent")
        .properties(height=alt.Step(size.height_px), autosize=alt.AutoSizeParams(type="fit-x", contains="padding"))
        .configure_view(stroke=None)
    )
    return drawn


def row_channel(axis: alt.Axis | None) -> alt.Y:
    """The rows of engines, the same in every layer.

    Their order is told: by itself a chart keeps rows where they first were, whatever becomes of its data.
    """
    in_order = alt.EncodingSortField("place", op="min", order="ascending")
    return alt.Y("row:N", title=None, sort=in_order, axis=axis, scale=alt.Scale(paddingInner=0.12))


def time_channel(column: str) -> alt.X:
    """The time axis, the same in every layer."""
    return alt.X(f"{column}:T", title=None, axis=times.axis(orient="top"), scale=alt.Scale(nice=False))


def grid_rows(cells: pd.DataFrame, engines: Sequence[str] | None = None) -> pd.DataFrame:
    """What the grid draws: one row a cell, in a steady order of engines, so that nothing jumps while it refreshes."""
    rows = in_order(cells, engines)
    speeds = speed_words(rows)
    engine_of = rows[NAMES].drop_duplicates("service_instance_id").set_index("service_instance_id", drop=False)
    named = {row.service_instance_id: row for row in rows_of(engine_of)}
    shared = set(engine_of.host_name[engine_of.host_name.duplicated()])
    drawn = pd.DataFrame(
        {
            "service_instance_id": rows.service_instance_id,
            "cell": rows.cell,
            "place": rows.place,
            "row": rows.service_instance_id.map(
                {one: row_name(row, speeds[one], row.host_name in shared) for one, row in named.items()}
            ),
            "engine": rows.service_instance_id.map({one: engine_label(row) for one, row in named.items()}),
            "start_ms": times.epoch_ms(rows.started_at),
            "end_ms": times.epoch_ms(rows.ended_at),
            "clock": "",
            "started_utc": times.utc(rows.started_at),
            "plain_fraction": rows.plain_fraction.astype("float64"),
            "tokens_per_s": rows.tokens_per_s.astype("float64"),
            "executions": rows.executions,
            "executions_lost": rows.executions_lost if "executions_lost" in rows else None,
            "cells": rows.cells if "cells" in rows else 1,
            "cells_stuck": rows.cells_stuck if "cells_stuck" in rows else rows.stuck.astype("int64"),
            "arm": rows.cell_arm,
            "judged": rows.has_speculative.astype(bool) & rows.plain_fraction.notna(),
            "stuck": rows.stuck.astype(bool),
            "inflated": rows.inflated.astype(bool) if "inflated" in rows else False,
        }
    )
    drawn = until_now(drawn, rows)
    span = max(drawn.end_ms.max() - drawn.start_ms.min(), 1.0)
    narrowest = NARROWEST_PX * span / TYPICAL_WIDTH_PX
    drawn["lone"] = are_lone(drawn, span)
    drawn["end_ms"] = drawn.end_ms.clip(lower=drawn.start_ms + narrowest * (drawn.clock == ""))
    widths = (drawn.end_ms - drawn.start_ms) * (TYPICAL_WIDTH_PX / span)
    found = list(map(flags_of, drawn.stuck, drawn.inflated))
    return drawn.assign(verdict=list(map(verdict, found, drawn.judged)), mark=list(map(mark, found, widths)))


def until_now(drawn: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    """What lies within the time that has passed. Of an engine that has nothing there, a place without width for the
    words that its clock is ahead.

    Args:
        drawn: Of `grid_rows`.
        rows: What it was made of.
    """
    newest_ms = times.epoch_ms(seen_at(rows)).max()
    if drawn.end_ms.max() <= newest_ms:
        return drawn
    ahead_s = clocks_ahead_s(rows)
    is_past = drawn.start_ms <= newest_ms
    have_past = set(drawn.service_instance_id[is_past])
    kept = drawn[is_past].assign(end_ms=drawn.end_ms[is_past].clip(upper=newest_ms))
    # Of each the last: of a single engine some row is always kept.
    to_come = drawn[~drawn.service_instance_id.isin(have_past)].drop_duplicates("service_instance_id", keep="last")
    if to_come.empty:
        return kept
    named = [clock_words(ahead_s.get(instance, 0.0)) for instance in to_come.service_instance_id]
    bare = to_come.assign(start_ms=newest_ms, end_ms=newest_ms, clock=named, judged=False, stuck=False, inflated=False)
    return pd.concat([kept, bare]).sort_values(["place", "start_ms"]) if len(kept) else bare


def are_lone(drawn: pd.DataFrame, span_ms: float) -> "pd.Series[bool]":
    """Which cells are too narrow to be seen, and have room to be drawn wider. The newest of a running engine, narrow for its
    first seconds, is none: it goes on from one that can be seen."""
    px = TYPICAL_WIDTH_PX / span_ms
    is_narrow = (drawn.end_ms - drawn.start_ms) * px < LONE_PX
    by_engine = drawn.assign(is_narrow=is_narrow).groupby("service_instance_id")
    is_close_after = (by_engine.start_ms.shift(-1) - drawn.start_ms) * px < ALONE_PX
    goes_on = ((drawn.start_ms - by_engine.end_ms.shift(1)) * px < ALONE_PX) & ~by_engine.is_narrow.shift(
        1, fill_value=True
    )
    return is_narrow & ~is_close_after & ~goes_on & (drawn.clock == "")


def in_order(cells: pd.DataFrame, engines: Sequence[str] | None) -> pd.DataFrame:
    """The rows by engine, in the order asked for or by name, and by time; their engine's `place` beside."""
    if engines is None:
        engines = list(dict.fromkeys(cells.sort_values(NAME_ORDER).service_instance_id))
    place = {instance: at for at, instance in enumerate(engines)}
    kept = cells[cells.service_instance_id.isin(place)]
    return kept.assign(place=kept.service_instance_id.map(place)).sort_values(["place", "started_at"])


def speed_words(rows: pd.DataFrame) -> dict[str, str]:
    """The throughput of each engine's newest cell; of one that is gone, by how much it lies behind the newest engine."""
    last = (
        rows.assign(seen_at=seen_at(rows))
        .sort_values("seen_at", kind="stable")
        .groupby("service_instance_id")
        .tokens_per_s.last()
    )
    told = {str(instance): "" if pd.isna(speed) else f"{speed:,.0f}" for instance, speed in last.items()}
    return told | {str(instance): f"-{age_of(behind)}" for instance, behind in gone_after_s(rows).items()}


def row_name(row: Row, speed: str, is_host_shared: bool) -> str:
    """An engine's row: host, instance, package and recipe, the throughput of its newest cell, what makes it unique, and
    one short line."""
    recipe = " · ".join(part for part in (row.engine_package, row.engine_recipe) if part)
    instance = row.service_instance_id
    host, short = row.host_name or "no host", short_instance(row)
    line = f"{tail(host, NARROW_HOST_LETTERS)} {tail(short, NARROW_INSTANCE_LETTERS)}" if is_host_shared else host
    return SEPARATOR.join([host, short, recipe, speed, instance, line])


def tail(text: str, letters: int) -> str:
    """The end of a text: what tells it from its neighbours."""
    return text if len(text) <= letters else f"…{text[1 - letters :].lstrip('.-_')}"


def flags_of(is_stuck: bool, is_inflated: bool) -> list[str]:
    """A cell's flags as words."""
    return [name for name, is_so in (("stuck", is_stuck), ("inflated", is_inflated)) if is_so]


def verdict(found: Sequence[str], is_judged: bool) -> str:
    """The verdict on a cell in words; `found` are its flags."""
    if found:
        return " and ".join(found)
    return "fine" if is_judged else "no choice of graphs, or no decoding"


def mark(found: Sequence[str], width_px: float) -> str:
    """A cell's flags as words, as letters, or not at all where it is too narrow (the strips remain)."""
    if width_px >= LONG_WORD_PX * max(len(found), 1):
        return ", ".join(found)
    return "".join(name[0].upper() for name in found) if width_px >= SHORT_WORD_PX else ""


def fraction_colour() -> Any:
    """Blue to orange, turning at the threshold; grey where there was no choice."""
    return alt.condition(
        "datum.judged",
        alt.Color(
            "plain_fraction:Q",
            title="plain fraction of decoding time",
            scale=alt.Scale(
                domain=palette.PLAIN_FRACTION_DOMAIN, range=palette.PLAIN_FRACTION_RANGE, clamp=True, interpolate="rgb"
            ),
            legend=alt.Legend(
                orient="bottom", direction="horizontal", gradientLength=LEGEND_PX, format=".0%", values=[0, 0.3, 0.6, 1]
            ),
        ),
        alt.value(palette.NO_CHOICE),
    )


def strip(base: alt.Chart, y: alt.Y, flag: str, side: int, size: RowSize) -> alt.Chart:
    """A bar along the upper (-1) or lower (1) edge of flagged cells, seen however narrow they are.

    Not for screen readers, who hear the verdict of the cell itself.
    """
    thick = 4 if size.lines > 1 else 3
    offset = side * (size.height_px * 0.44 - thick / 2)
    drawn: alt.Chart = (
        base.transform_filter(f"datum.{flag}")
        .mark_rect(height=thick, yOffset=offset, color=palette.FLAG, opacity=1, aria=False)
        .encode(y=y)
    )
    return drawn


def lone_cells(chart: alt.Chart, y: alt.Y, size: RowSize) -> alt.Chart:
    """Cells that would be too narrow, as bars of a width in px."""
    drawn: alt.Chart = (
        chart.transform_filter("datum.lone")
        .mark_tick(
            orient="vertical",
            thickness=LONE_PX,
            xOffset=LONE_PX / 2,
            size=size.height_px * 0.88,
            opacity=1,
            cursor="pointer",
            aria=False,
        )
        .encode(x=time_channel("start_ms"), y=y, color=fraction_colour())
    )
    return drawn


def clocks(chart: alt.Chart, y: alt.Y, size: RowSize) -> alt.LayerChart:
    """That a clock is ahead, in the row of an engine whose cells all lie in the future; on the page's own ground, as the
    line of a mark may lie beneath."""
    base = chart.transform_filter("datum.clock != ''").encode(x=time_channel("start_ms"), y=y, text="clock:N")
    how: dict[str, Any] = {"align": "right", "dx": -6, "baseline": "middle", "fontSize": 12 if size.lines > 1 else 10}
    ground = alt.ExprRef("background")
    return alt.LayerChart(
        layer=[
            base.mark_text(**how, color=ground, stroke=ground, strokeWidth=5, strokeJoin="round", aria=False),
            base.mark_text(**how, color=palette.FLAG),
        ]
    )


def words(chart: alt.Chart, y: alt.Y, size: RowSize) -> alt.Chart:
    """The flags as text in the middle of their cells."""
    drawn: alt.Chart = (
        chart.transform_filter(f"datum.mark != '' && containerSize()[0] >= {NARROW_PX}")
        .transform_calculate(middle_ms="(datum.start_ms + datum.end_ms) / 2")
        .mark_text(
            fontWeight="bold", fontSize=12 if size.lines > 1 else 9, baseline="middle", align="center", aria=False
        )
        .encode(x=time_channel("middle_ms"), y=y, text="mark:N", color=text_colour())
    )
    return drawn


def text_colour() -> Any:
    """Dark on the pale middle of the scale, white on its ends and on grey."""
    pale = "datum.judged && datum.plain_fraction > 0.12 && datum.plain_fraction < 0.75"
    return alt.condition(pale, alt.value("#1c1c1c"), alt.value("#ffffff"))


def left_axis(size: RowSize) -> alt.Axis:
    """Host and instance, above package and recipe where a row has two lines; cut short on a telephone."""
    parts = f"split(datum.value, '{SEPARATOR}')"
    host, recipe = cut(f"{parts}[0]", HOST_LETTERS), cut(f"{parts}[2]", RECIPE_LETTERS)
    wide = f"{host} + ' / ' + {parts}[1]"
    if size.lines > 1:
        wide, narrow = f"[{wide}, {recipe}]", f"[{cut(f'{parts}[0]', NARROW_LETTERS)}, {parts}[1]]"
    else:
        narrow = cut(f"{parts}[5]", NARROW_LETTERS)
    text = f"containerSize()[0] < {NARROW_PX} ? {narrow} : {wide}"
    return alt.Axis(labelExpr=text, labelLimit=260, ticks=False, domain=False, grid=False, **times.lines(size.lines))


def cut(text: str, letters: int) -> str:
    """The expression for a text in so many letters, its two ends where it has more: machines differ at these."""
    return f"truncate({text}, {letters}, 'center')"


def right_axis() -> alt.Axis:
    """Tokens/s of the newest cell; how long an engine has been gone is slanted, as no figure is."""
    slant = {
        "condition": {"test": f"test(/^-/, split(datum.value, '{SEPARATOR}')[3])", "value": "italic"},
        "value": "normal",
    }
    return alt.Axis(
        orient="right",
        title="tokens/s",
        titleAngle=0,
        titleAlign="right",
        titleFontSize=11,
        titleX=52,
        titleY=-14,
        labelExpr=f"split(datum.value, '{SEPARATOR}')[3]",
        labelAlign="right",
        labelFontStyle=slant,
        labelPadding=54,
        ticks=False,
        domain=False,
        grid=False,
    )


def tooltip(has_losses: bool) -> list[alt.Tooltip]:
    """What hovering over a cell tells, or over a stretch of cells, whose losses are not counted."""
    return [
        alt.Tooltip("engine:N"),
        alt.Tooltip("service_instance_id:N", title="instance"),
        alt.Tooltip("cell:N"),
        alt.Tooltip("arm:N"),
        alt.Tooltip("verdict:N"),
        alt.Tooltip("plain_fraction:Q", title="plain fraction", format=".1%"),
        alt.Tooltip("tokens_per_s:Q", title="tokens/s", format=",.0f"),
        alt.Tooltip("executions:Q", format=","),
        *(LOST if has_losses else OF_STRETCH),
        *times.tooltip("start_ms", "started_utc", "started"),
    ]
