"""Cell: what happened in it?"""

from datetime import UTC, datetime, timedelta

import pandas as pd
import streamlit as st

from dashboards.answers import REFRESH_S, Answer, answer
from dashboards.charts.cell_timeline import cell_timeline
from dashboards.charts.choices import choices
from dashboards.notices import say_freshness, say_problem, viewer_zone
from dashboards.words import Row, cell_header, cell_sentence, clock, counted

# Executions drawn; a longer cell is cut, and the page says so.
EXECUTIONS_MAX = 10_000
# A cell whose last execution completed within this time may still be running.
RUNNING = timedelta(seconds=10)


def is_running(cells: pd.DataFrame) -> bool:
    """Whether more executions are to be expected."""
    return not cells.empty and bool(cells.ended_at.max() > datetime.now(UTC) - RUNNING)


def head(cell: Row, stuck: Answer, inflation: Answer) -> None:
    """Whose cell it is, and what happened."""
    st.markdown(cell_header(cell, viewer_zone()))
    verdict = cell_sentence(cell, next(stuck.rows.itertuples(), None), inflation.rows)
    show = st.warning if cell.stuck or cell.inflated else st.success
    show(verdict, icon=":material/flag:" if cell.stuck or cell.inflated else ":material/check:")


def drawings(executions: pd.DataFrame, candidates: pd.DataFrame, total: int) -> None:
    """The charts of the executions."""
    if len(executions) < total:
        st.caption(f"Drawn are the first {len(executions):,} of {counted(total, 'execution')}.")
    st.altair_chart(
        cell_timeline(executions, candidates),
        key="cell_timeline",
        alt="Executions of the cell over time: GPU busy by graph, idle gaps, queue depth, tokens/s, estimates and costs",
    )
    st.subheader("Who was chosen", anchor=False)
    st.altair_chart(choices(executions), key="choices", alt="Share of wall time of each graph")


def draw(instance: str, name: str) -> None:
    """The page of one cell."""
    which = {"service_instance_id": instance, "cell": name}
    cells = answer("cells", **which)
    problems = st.container()
    if cells.rows.empty:
        with problems:
            say_problem([cells])
        if cells.known:
            st.info("No execution of this cell is stored; it may have expired.", icon=":material/inbox:")
        return
    cell = next(cells.rows.itertuples())
    stuck, inflation = answer("stuck_plain", **which), answer("estimate_inflation", **which)
    executions = answer("executions", limit=EXECUTIONS_MAX, **which)
    candidates = answer("candidates", **which)
    head(cell, stuck, inflation)
    say_freshness(cells, cell.ended_at, live=is_running(cells.rows))
    if not executions.rows.empty:
        drawings(executions.rows, candidates.rows, int(cell.executions))
    with problems:
        say_problem([cells, stuck, inflation, executions, candidates])


def tick(instance: str, name: str) -> None:
    """The page, and its end as a live one once the cell has ended."""
    draw(instance, name)
    if not is_live(instance, name):
        st.rerun()


def is_live(instance: str, name: str) -> bool:
    """Whether to ask again: the cell is running, or ClickHouse has to come back."""
    cells = answer("cells", service_instance_id=instance, cell=name)
    return bool(cells.problem) or is_running(cells.rows)


def chooser() -> None:
    """Where the URL names no cell: the newest ones to choose from."""
    cells = answer("cells", limit=20)
    say_problem([cells])
    st.info("Open a cell from the Fleet page, or one of the newest:", icon=":material/touch_app:")
    now = datetime.now(UTC)
    for row in cells.rows.itertuples():
        st.page_link(
            "pages/cell.py",
            label=f"{clock(row.started_at, viewer_zone(), now)} · {row.host_name} · {row.cell}",
            query_params={"engine": row.service_instance_id, "cell": row.cell},
        )


st.title("What happened in this cell?", anchor=False)
asked_engine, asked_cell = st.query_params.get("engine", ""), st.query_params.get("cell", "")
if not asked_engine or not asked_cell:
    chooser()
elif is_live(asked_engine, asked_cell):
    st.fragment(tick, run_every=REFRESH_S)(asked_engine, asked_cell)
else:
    draw(asked_engine, asked_cell)
