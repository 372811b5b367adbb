"""Which cell a URL names; where it names none: some to choose from."""

from collections.abc import Callable

import pandas as pd
import streamlit as st

from dashboards.links import cell_parameters
from dashboards.parts.notices import say_problem, viewer_zone
from dashboards.questions.cells import window
from dashboards.questions.verdicts import cells_now, stuck_now
from dashboards.reading.answers import Answer
from dashboards.rows import rows_of
from dashboards.words.cells import cell_label
from dashboards.words.texts import escaped

OFFERED_MAX = 20
NOT_STORED = "No execution of this cell is stored; it may have expired. There are these."
RECENTLY: tuple[dict[str, str | int], ...] = ({"from_": "-1h", "to": "now"}, {"from_": "-1d", "to": "now"})
"""How far back to look, the quickest answer first: a day of a fleet is some hundred thousand cells. What a clock that is ahead
puts after now would be the newest for as long as it is stored."""
EVER: tuple[dict[str, str | int], ...] = ({"last_s": 0},)


def cell_named(page: str, invitation: str) -> tuple[str, str] | None:
    """The cell that the address names: its engine's instance, and its name. Without an engine, the only one of its name.

    Where it names none, or there is not just one, some are offered.

    Args:
        page: The page's file.
        invitation: What to do where no cell is named, in one sentence.
    """
    engine, cell = st.query_params.get("engine", ""), st.query_params.get("cell", "")
    if engine and cell:
        return engine, cell
    if not cell:
        offer_cells(page, invitation)
        return None
    told = cells_now(cell=cell, limit=OFFERED_MAX, **window(cell))
    engines = [] if told.rows.empty else list(told.rows.service_instance_id.unique())
    if len(engines) == 1:
        return str(engines[0]), cell
    say_problem([told])
    if engines:
        several = f"{len(engines)} engines have" if len(engines) < OFFERED_MAX else "Many engines have"
        st.info(f"{several} a cell {escaped(cell)}: choose whose.", icon=":material/touch_app:")
        link_cells(page, told.rows)
    elif told.known:
        offer_cells(page, f"No execution of a cell {escaped(cell)} is stored; it may have expired. There are these.")
    return None


def offer_cells(page: str, invitation: str) -> None:
    """Links to a page for the stuck cells of the last hour, or of the last day, or else the newest; without any, of all time.

    Args:
        page: The page's file.
        invitation: What to do, in one sentence.
    """
    cells, spans = first_found(cells_now, RECENTLY), RECENTLY
    if cells.known and cells.rows.empty:
        cells, spans = first_found(cells_now, EVER), EVER
    stuck = first_found(stuck_now, spans)
    say_problem([stuck, cells])
    if not cells.known:
        return
    if cells.rows.empty:
        st.info("No executions are stored yet.", icon=":material/inbox:")
        return
    st.info(invitation, icon=":material/touch_app:")
    link_cells(page, cells.rows if stuck.rows.empty else stuck.rows)


def link_cells(page: str, cells: pd.DataFrame) -> None:
    """A link to a page for each of these cells."""
    zone = viewer_zone()
    for row in rows_of(cells):
        st.page_link(page, label=cell_label(row, zone), query_params=cell_parameters(row.service_instance_id, row.cell))


def first_found(ask: Callable[..., Answer], spans: tuple[dict[str, str | int], ...]) -> Answer:
    """What was asked of the first of these spans that has any, or else the last span's answer."""
    for span in spans:
        told = ask(limit=OFFERED_MAX, **span)
        if not told.known or not told.rows.empty:
            break
    return told
