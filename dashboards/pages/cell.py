"""Cell: what happened in it?"""

from datetime import UTC, datetime

import pandas as pd
import streamlit as st

from dashboards.answers import REFRESH_S, Answer, answer
from dashboards.cells import EXECUTIONS_MAX, bounds, is_running, window
from dashboards.charts.cell_timeline import cell_timeline
from dashboards.charts.choices import choices
from dashboards.charts.times import AXIS_WIDTH_PX
from dashboards.links import CELL_PAGE, cell_parameters
from dashboards.notices import say_freshness, say_problem, viewer_zone
from dashboards.rows import Row, first_row, rows_of
from dashboards.words import cell_header, cell_sentence, clock, counted


def cell_answer(instance: str, name: str) -> Answer:
    """The cell's row of `cells`."""
    return answer("cells", service_instance_id=instance, cell=name, **window(name))


def is_live(cells: Answer) -> bool:
    """Whether to ask again: the cell is running, or ClickHouse has to come back."""
    return bool(cells.problem) or is_running(cells.rows)


def verdict(cell: Row, stuck: pd.DataFrame, inflation: pd.DataFrame) -> None:
    """What happened, in a sentence."""
    told = cell_sentence(cell, first_row(stuck), inflation)
    flagged = cell.stuck or cell.inflated
    show = st.warning if flagged else st.success
    show(told, icon=":material/flag:" if flagged else ":material/check:")


def timeline(executions: pd.DataFrame, candidates: pd.DataFrame, total: int) -> None:
    """Everything of the cell that has a time."""
    if len(executions) < total:
        st.caption(f"Drawn are the first {len(executions):,} of {counted(total, 'execution')}.")
    with st.container(horizontal=True):
        st.altair_chart(
            cell_timeline(executions, candidates),
            key="cell_timeline",
            width="stretch",
            alt="Executions over time: GPU busy by graph, idle gaps, queue depth, tokens/s, estimates and measured costs",
        )
        # Streamlit stretches the plotting areas to the container and leaves no room for their axes.
        st.space(AXIS_WIDTH_PX)


def shares(executions: pd.DataFrame) -> None:
    """Who was chosen, and how often."""
    st.subheader("Who was chosen", anchor=False)
    st.altair_chart(choices(executions), key="choices", alt="Share of wall time of each graph")


def draw(cells: Answer) -> list[Answer]:
    """The page of one cell; the answers that it rests on."""
    cell: Row = first_row(cells.rows)
    which = {**cell_asked(cell), **bounds(cells.rows)}
    # A stretch of plain decode does not end with its cell: asked without an end, as the Fleet page asks.
    stuck = answer("stuck_plain", **{name: value for name, value in which.items() if name != "to"})
    inflation = answer("estimate_inflation", **which)
    executions = answer("executions", limit=EXECUTIONS_MAX, **which)
    candidates = answer("candidates", **which)
    st.markdown(cell_header(cell, viewer_zone()))
    verdict(cell, stuck.rows, inflation.rows)
    say_freshness(cells, cell.ended_at, live=is_running(cells.rows))
    if not executions.rows.empty:
        timeline(executions.rows, candidates.rows, int(cell.executions))
        shares(executions.rows)
    return [cells, stuck, inflation, executions, candidates]


def cell_asked(cell: Row) -> dict[str, str]:
    """The parameters that name a cell."""
    return {"service_instance_id": cell.service_instance_id, "cell": cell.cell}


def page(instance: str, name: str) -> Answer:
    """The page of a cell, whatever is known of it."""
    cells = cell_answer(instance, name)
    problems = st.container()
    shown = [cells]
    if not cells.rows.empty:
        shown = draw(cells)
    elif cells.known:
        st.info("No execution of this cell is stored; it may have expired.", icon=":material/inbox:")
    with problems:
        say_problem(shown)
    return cells


@st.fragment(run_every=REFRESH_S)
def live(instance: str, name: str) -> None:
    """The page while the cell runs; once it has ended, the whole page is drawn a last time."""
    if not is_live(page(instance, name)):
        st.rerun()


def chooser() -> None:
    """Where the URL names no cell: the newest ones to choose from."""
    cells = answer("cells", limit=20, from_="-1d")
    say_problem([cells])
    st.info("Open a cell from the Fleet page, or one of the newest of the last day.", icon=":material/touch_app:")
    now = datetime.now(UTC)
    for row in rows_of(cells.rows):
        st.page_link(
            CELL_PAGE,
            label=f"{clock(row.started_at, viewer_zone(), now)} · {row.host_name} · {row.cell}",
            query_params=cell_parameters(row.service_instance_id, row.cell),
        )


st.title("What happened in this cell?", anchor=False)
asked_engine, asked_cell = st.query_params.get("engine", ""), st.query_params.get("cell", "")
if not asked_engine or not asked_cell:
    chooser()
elif is_live(cell_answer(asked_engine, asked_cell)):
    live(asked_engine, asked_cell)
else:
    page(asked_engine, asked_cell)
