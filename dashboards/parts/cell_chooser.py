"""Where a URL names no cell: some to choose from."""

from datetime import UTC, datetime

import streamlit as st

from dashboards.links import cell_parameters
from dashboards.parts.notices import say_problem, viewer_zone
from dashboards.questions.verdicts import cells_now, stuck_now
from dashboards.rows import Row, rows_of
from dashboards.words.texts import clock, engine_label, escaped, percent

OFFERED_MAX = 20
SINCE = "-1d"


def offer_cells(page: str, invitation: str) -> None:
    """Links to a page for the stuck cells of the last day, or else its newest ones; without any, of all time.

    Args:
        page: The page's file.
        invitation: What to do, in one sentence.
    """
    stuck = stuck_now(limit=OFFERED_MAX, from_=SINCE)
    cells = cells_now(limit=OFFERED_MAX, from_=SINCE)
    if cells.known and cells.rows.empty:
        stuck = stuck_now(limit=OFFERED_MAX, last_s=0)
        cells = cells_now(limit=OFFERED_MAX, last_s=0)
    say_problem([stuck, cells])
    if not cells.known:
        return
    if cells.rows.empty:
        st.info("No executions are stored yet.", icon=":material/inbox:")
        return
    st.info(invitation, icon=":material/touch_app:")
    for row in rows_of(cells.rows if stuck.rows.empty else stuck.rows):
        st.page_link(page, label=label_of(row), query_params=cell_parameters(row.service_instance_id, row.cell))


def label_of(row: Row) -> str:
    """A cell: when, whose, and whether it is stuck."""
    began = clock(row.started_at, viewer_zone(), datetime.now(UTC))
    plain = "" if row.plain_fraction != row.plain_fraction else f" · {percent(row.plain_fraction)} plain decode"
    return f"{began} · {escaped(engine_label(row))} · {escaped(row.cell)}{plain}"
