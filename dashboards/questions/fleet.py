"""What the Fleet page shows of a fleet, however large: which question to ask, in which order, and on how many pages.

Cells as long as they can be looked at; beyond that, stretches of them (`fleet_stretches`), each named by its worst cell.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Final, NamedTuple

import pandas as pd

from dashboards.questions.arrivals import seen_at
from dashboards.questions.ranges import TimeRange, time_parameters
from dashboards.questions.verdicts import cells_now, stuck_now
from dashboards.reading.answers import Answer, Ask, answer, slow_answer
from engine_hooks.commands.counting import counted
from queries.parameters import instant

CELLS_MAX: Final = 3000
"""Cells drawn one by one; of more, stretches are drawn."""
STRETCHES: Final = 48
"""Stretches of an engine, about so many."""
STRETCH_LENGTHS_S: Final = (60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 43_200, 86_400, 604_800)
STRETCHES_LISTED: Final = 20
STUCK_MAX: Final = 1000
"""Stuck cells asked for, whatever the filters; of more, each filter is asked for by itself."""
ENGINES_A_PAGE: Final = 40
COMPACT_ABOVE: Final = 12
"""Engines; with more, a row has one line, so that a page of them fits on a screen."""

WORST, NAME, SPEED = "what is lost", "name", "tokens/s"
ORDERS: Final = (WORST, NAME, SPEED)
CELL_KEY: Final = ["service_instance_id", "cell"]
DETAILS: Final = ["plain_since", "plain_stretch_s", "best_speculative_graph", "gain_percent"]
"""What `stuck_plain` tells of a cell, and `cells` does not."""
BY_NAME: Final = ["host_name", "engine_package", "engine_recipe", "service_instance_id"]
ENGINE_COLUMNS: Final = {"host": "host_name", "package": "engine_package", "recipe": "engine_recipe"}
CELL_COLUMNS: Final = {**ENGINE_COLUMNS, "arm": "cell_arm"}
"""A filter's name in the catalogue, and the column that it is about."""


class Filters(NamedTuple):
    """What the viewer chose; '' and 0 are any."""

    time: tuple[tuple[str, str | int], ...]
    """The parameters of the time range."""
    named: tuple[tuple[str, str], ...]
    """Host, package, recipe and arm, as far as they are chosen."""
    concurrency: int = 0
    is_steady: bool = False
    """Of the time, as `TimeRange.is_steady`."""

    @property
    def ask(self) -> Ask:
        """How questions about this time are asked."""
        return slow_answer if self.is_steady else answer

    @property
    def parameters(self) -> dict[str, str | int]:
        """As the catalogue takes them; concurrency is not among them."""
        return {**dict(self.time), **dict(self.named)}

    def __bool__(self) -> bool:
        return bool(self.named or self.concurrency)


class Fleet(NamedTuple):
    """The cells of a fleet, or stretches of them."""

    told: Answer
    stretch_s: int
    """0 where each row is a cell."""


def fleet(engines: pd.DataFrame, filters: Filters) -> Fleet:
    """The cells asked for, or stretches where they are too many.

    A fleet of few cells is asked for whole, whatever the filters: they then answer without another question, out of
    what all viewers share.

    Args:
        engines: Rows of the query `engines` in the same time.
        filters: What to keep.
    """
    chosen = matching(engines, filters)
    if cells_of(chosen) <= CELLS_MAX:
        asked = dict(filters.time) if cells_of(engines) <= CELLS_MAX else filters.parameters
        return Fleet(narrowed(still_heard_of(cells_now(filters.ask, **asked), dict(filters.time)), filters), 0)
    heard_of = chosen.rename(columns={"last_seen": "ended_at"})
    stretch_s = stretch_of(seen_at(heard_of).max() - chosen.first_seen.min())
    found = slow_answer("fleet_stretches", stretch_s=stretch_s, concurrency=filters.concurrency, **filters.parameters)
    return Fleet(still_heard_of(found, dict(filters.time)), stretch_s)


def stuck_cells(filters: Filters) -> Answer:
    """The stuck cells, worst first: of all that there are, unless those are too many to leave some out."""
    told = stuck_now(filters.ask, limit=STUCK_MAX, **dict(filters.time))
    if filters and len(told.rows) == STUCK_MAX:
        told = stuck_now(filters.ask, limit=STUCK_MAX, **filters.parameters)
    return narrowed(told, filters)


def repeated_numbers(filters: Filters) -> Answer:
    """The instances under which submission numbers come more than once, whatever the filters by name."""
    return slow_answer("repeated_numbers", **dict(filters.time))


def told_of(cells: pd.DataFrame, details: pd.DataFrame) -> pd.DataFrame:
    """The stuck ones of these cells, worst first: what the page says of them in its sentence and its chart.

    The two questions are answered at different moments. Which cells are stuck, and how fast they are, is told of the
    first one alone, so that a page does not contradict itself; what only the other knows is added where it knows it.

    Args:
        cells: Rows of `cells`.
        details: Rows of `stuck_plain`.
    """
    # An answer without rows may know nothing of their types.
    keys = {key: cells[key].dtype for key in CELL_KEY}
    more = details.reindex(columns=[*CELL_KEY, *DETAILS]).astype(keys)
    joined = cells[flag(cells, "stuck")].merge(more, how="left", on=CELL_KEY)
    graphs = joined.best_speculative_graph.astype(object)
    joined = joined.assign(best_speculative_graph=graphs.where(graphs.notna(), ""))
    return joined.sort_values(["plain_fraction", "plain_s", *CELL_KEY], ascending=[False, False, True, True])


def cells_of(engines: pd.DataFrame) -> int:
    """How many cells these engines have together."""
    return 0 if engines.empty else int(engines.cells.sum())


def engines_in(time_range: TimeRange) -> Answer:
    """The engines of a time range, by their own clocks."""
    ask = slow_answer if time_range.is_steady else answer
    return ask("engines", **time_parameters(time_range))


def engines_shown(engines: Answer, time_range: TimeRange) -> pd.DataFrame:
    """Those of `engines_in` whose cells `fleet` leaves: what filters offer."""
    return still_heard_of(engines, time_parameters(time_range)).rows


def matching(engines: pd.DataFrame, filters: Filters) -> pd.DataFrame:
    """The engines that the filters by name leave."""
    return of_names(engines, filters, ENGINE_COLUMNS)


def of_names(rows: pd.DataFrame, filters: Filters, columns: dict[str, str]) -> pd.DataFrame:
    """The rows that the filters on these columns leave."""
    for name, value in filters.named:
        if name in columns and not rows.empty:
            rows = rows[rows[columns[name]] == value]
    return rows


def stretch_of(span: timedelta) -> int:
    """A round length, so that the span has about `STRETCHES`."""
    wanted = span.total_seconds() / STRETCHES
    return next((length for length in STRETCH_LENGTHS_S if length >= wanted), STRETCH_LENGTHS_S[-1])


def narrowed(told: Answer, filters: Filters) -> Answer:
    """What the filters leave of an answer about cells."""
    rows = of_names(told.rows, filters, CELL_COLUMNS)
    if filters.concurrency and not rows.empty:
        rows = rows[(rows.cell_concurrency == filters.concurrency).fillna(False)]
    return replace(told, rows=rows)


def still_heard_of(told: Answer, asked: Mapping[str, str | int]) -> Answer:
    """Cells, stretches or engines without the engines that were last heard of before a time up to now began: a clock that was
    ahead put them into it, and would keep them there for as long as it was ahead.

    Args:
        told: Rows of `cells`, `fleet_stretches` or `engines`.
        asked: The parameters of the time.
    """
    if told.rows.empty or told.at is None or "from_" not in asked or "to" in asked:
        return told
    since = pd.Timestamp(instant(asked["from_"], told.at.timestamp), tz="UTC")
    last_received_at = told.rows.groupby("service_instance_id").last_received_at.transform("max")
    return replace(told, rows=told.rows[last_received_at >= since])


def ordered(cells: pd.DataFrame, order: str) -> list[str]:
    """The engines in the order of their rows.

    Args:
        cells: Rows of `cells` or of `fleet_stretches`.
        order: One of `ORDERS`. What is lost is the time in plain decode of stuck cells, then what inflated
            estimates turned. What is not known counts as nothing, but a flagged engine stands before those that are not.
    """
    summed = summed_by_engine(cells)
    first = {WORST: ["lost", "turned", "flagged"], SPEED: ["speed"], NAME: []}[order]
    ascending = [order == SPEED] * len(first) + [True] * len(BY_NAME)
    in_order = summed.sort_values([*first, *BY_NAME], ascending=ascending, na_position="last")
    return [str(instance) for instance in in_order.service_instance_id]


def summed_by_engine(cells: pd.DataFrame) -> pd.DataFrame:
    """One row an engine: what it lost, whether any of it is flagged, and the speed of its newest cell that has one."""
    is_stuck, is_inflated = flag(cells, "stuck"), flag(cells, "inflated")
    rows = cells[BY_NAME].assign(
        lost=cells.plain_stuck_s if "plain_stuck_s" in cells else cells.plain_s.where(is_stuck, 0.0),
        turned=cells.turned_s if "turned_s" in cells else 0.0,
        flagged=is_stuck | is_inflated,
        speed=cells.tokens_per_s,
        started_at=cells.started_at,
    )
    summed = rows.sort_values("started_at").groupby("service_instance_id", as_index=False).agg(
        host_name=("host_name", "first"), engine_package=("engine_package", "first"),
        engine_recipe=("engine_recipe", "first"), lost=("lost", "sum"), turned=("turned", "sum"),
        flagged=("flagged", "any"), speed=("speed", "last"),
    )  # fmt: skip
    # Rounded, so that rows do not change places with every execution while one looks.
    summed[["lost", "turned", "speed"]] = summed[["lost", "turned", "speed"]].astype("float64").round(-1)
    return summed


def flag(cells: pd.DataFrame, name: str) -> "pd.Series[bool]":
    """Which cells bear a flag; what is not known bears none."""
    if name not in cells:
        return pd.Series(False, index=cells.index)
    return cells[name].astype("boolean").fillna(False).astype(bool)


def worst_stretches(stretches: pd.DataFrame) -> pd.DataFrame:
    """The stretches that lost most, worst first; rows of `fleet_stretches`."""
    return (
        stretches[stretches.stuck].sort_values("plain_stuck_s", ascending=False, kind="stable").head(STRETCHES_LISTED)
    )


def pages_of(engines: list[str]) -> int:
    """How many pages these engines take."""
    return max(1, math.ceil(len(engines) / ENGINES_A_PAGE))


def on_page(engines: list[str], page: int) -> list[str]:
    """The engines of one page, counted from 1; a page beyond the last is the last."""
    at = min(page, pages_of(engines)) - 1
    return engines[at * ENGINES_A_PAGE : (at + 1) * ENGINES_A_PAGE]


def legend_words(stretch_s: int) -> str:
    """What the marks of the grid mean."""
    if not stretch_s:
        return (
            "Red along a cell's upper edge: stuck in plain decode. Along its lower edge: inflated estimates turned"
            " decisions. Where there is room a cell says so: stuck or S, inflated or I. Dark grey: no speculative graph to"
            " choose from, or no decoding; the pale grey of the scale lies at the threshold. At the right tokens/s of the"
            " newest cell, or how far an engine that fell silent lies behind the newest one. Click a cell to open it."
        )
    return (
        f"Each field is {length_words(stretch_s)} of cells, because there are more than {CELLS_MAX:,}: red along its upper"
        " edge where one of them is stuck in plain decode. Click it to open its worst cell. A shorter time range or a"
        " filter shows the cells themselves, and whether their estimates were inflated."
    )


def length_words(seconds: int) -> str:
    """A round length."""
    for unit, size in (("day", 86_400), ("hour", 3600), ("minute", 60)):
        if seconds >= size:
            return counted(seconds // size, unit)
    return counted(seconds, "second")
