"""Cell: what happened in it?"""

import pandas as pd
import streamlit as st

from dashboards.charts.cell_timeline import cell_timeline
from dashboards.charts.choices import choices
from dashboards.charts.gpu_lanes import SELECTION
from dashboards.charts.times import AXIS_WIDTH_PX
from dashboards.links import CELL_PAGE, GRAPHS_PAGE, WHAT_IF_PAGE, cell_parameters, graphs_parameters
from dashboards.parts.address import heed_number, heeded
from dashboards.parts.cell_chooser import NOT_STORED, cell_named, offer_cells
from dashboards.parts.charted import show_chart
from dashboards.parts.notices import Known, say_freshness, say_problem, viewer_zone
from dashboards.questions.cells import CANDIDATES_MAX, EXECUTIONS_MAX, around, bounds, is_running, window
from dashboards.questions.verdicts import cells_now, inflation_now, stuck_now
from dashboards.reading.answers import REFRESH_S, Answer, answer
from dashboards.reading.outcomes import Outcome, story
from dashboards.reading.store import clickhouse_url
from dashboards.rows import Row, first_row
from dashboards.words.cells import cell_header, cell_sentence
from dashboards.words.stories import chapter_text, execution_table, fields_missing
from dashboards.words.texts import escaped
from engine_hooks.commands.counting import counted
from queries.postmortem.markdown import markdown_of
from queries.postmortem.story import Story, poisons_of

EXECUTION_FIELD_PX = 360


def cell_answer(instance: str, name: str) -> Answer:
    """The cell's row of `cells`."""
    return cells_now(service_instance_id=instance, cell=name, **window(name))


def is_live(cells: Answer) -> bool:
    """Whether to ask again: the cell is running, or ClickHouse has to come back."""
    return bool(cells.problem) or is_running(cells.rows)


def verdict(cell: Row, stuck: pd.DataFrame, inflation: pd.DataFrame) -> None:
    """What happened, in a sentence."""
    told = cell_sentence(cell, first_row(stuck), inflation)
    flagged = cell.stuck or cell.inflated
    show = st.warning if flagged else st.success
    show(told, icon=":material/flag:" if flagged else ":material/check:")


def what_shows_it(told: Outcome[Story]) -> None:
    """The findings, each with its confidence and what shows it, and the whole story as a file."""
    if told.value is None:
        return
    st.subheader(escaped(told.value.headline), anchor=False)
    for chapter in told.value.chapters:
        st.markdown(chapter_text(chapter))
    st.download_button(
        "The story as Markdown, with its SQL",
        markdown_of(told.value),
        f"{told.value.cell}.md",
        "text/markdown",
        icon=":material/download:",
    )


def ways_on(cell: Row) -> None:
    """Links to what one asks next."""
    with st.container(horizontal=True):
        st.page_link(
            WHAT_IF_PAGE,
            label="What another cost model would have done",
            icon=":material/alt_route:",
            query_params=cell_parameters(cell.service_instance_id, cell.cell),
        )
        st.page_link(
            GRAPHS_PAGE,
            label="What the graphs cost on this host",
            icon=":material/show_chart:",
            query_params=graphs_parameters(cell.host_name),
        )


def choose_clicked() -> None:
    """The execution that was clicked becomes the one that is shown whole."""
    clicked = st.session_state["cell_timeline"].selection.get(SELECTION, [])
    if clicked:
        st.session_state["execution"] = int(clicked[0]["sequence"])


def timeline(cell: Row, executions: Answer, candidates: Answer, told: Outcome[Story]) -> None:
    """Everything of the cell that has a time."""
    st.subheader("Execution by execution", anchor=False)
    total = int(cell.executions)
    with st.container():
        # The two are had one after the other: of a running cell the total may be ahead, or behind.
        if EXECUTIONS_MAX <= len(executions.rows) < total:
            st.caption(f"Drawn are the first {len(executions.rows):,} of {counted(total, 'execution')}.")
    poisons = () if told.value is None else poisons_of(told.value.diagnosis)
    marks = () if told.value is None else told.value.noted.marks
    rests_on = *cell_asked(cell).values(), executions.at, candidates.at, told.at
    with st.container(horizontal=True):
        show_chart(
            "cell_timeline",
            rests_on,
            lambda: cell_timeline(executions.rows, candidates.rows, poisons, marks),
            on_select=choose_clicked,
            selection_mode=SELECTION,
            alt="Executions over time: GPU busy by graph, idle gaps, queue depth, tokens/s, margins, estimates and costs",
        )
        # Streamlit stretches the plotting areas to the container and leaves no room for their axes.
        st.space(AXIS_WIDTH_PX)
    st.caption(
        "Drag across the first strip to zoom, double-click it to see everything. Idle in grey: the engine had no work."
        " Estimate against cost: line estimate, dots GPU time, rings wall time; ▲ an execution that lifted the estimate"
        " to harm."
    )


def one_execution(cell: Row, executions: pd.DataFrame) -> list[Answer]:
    """All of the execution that was clicked, or named by its sequence."""
    heed_number("execution", 0)
    sequence = st.number_input(
        "Execution to see whole: click one above, or type its sequence",
        value=None,
        step=1,
        min_value=0,
        key="execution",
        bind="query-params",
        on_change=heeded,
        args=("execution",),
        width=EXECUTION_FIELD_PX,
    )
    if sequence is None:
        return []
    found = first_row(executions[executions.graph_sequence == sequence])
    if found is None:
        st.info(f"No execution {sequence:,} in this cell; it may have been lost.", icon=":material/inbox:")
        return []
    answered = answer("record", **cell_asked(cell), **around(found.started_at))
    record = None if answered.rows.empty else first_row(answered.rows[answered.rows.graph_sequence == sequence])
    if record is not None:
        st.markdown(execution_table(record), unsafe_allow_html=True)
        if missing := fields_missing(record):
            st.caption(escaped(f"Not recorded: {', '.join(missing)}."))
    return [answered]


@st.fragment
def looked_at(cell: Row, executions: Answer, candidates: Answer, told: Outcome[Story]) -> None:
    """The timeline and the execution chosen in it: a click draws these anew, not the whole page."""
    timeline(cell, executions, candidates, told)
    whole(cell, executions)


@st.fragment
def whole(cell: Row, executions: Answer) -> None:
    """The execution chosen: another one, typed, draws this anew, and not the timeline."""
    shown = one_execution(cell, executions.rows)
    if not executions.problem:  # Else the page says it.
        say_problem(shown)


def shares(cell: Row, executions: Answer) -> None:
    """Who was chosen, and how often."""
    st.subheader("Who was chosen", anchor=False)
    rests_on = *cell_asked(cell).values(), executions.at
    show_chart("choices", rests_on, lambda: choices(executions.rows), alt="Share of wall time of each graph")


def draw(cells: Answer) -> list[Known]:
    """The page of one cell; the answers that it rests on."""
    cell: Row = first_row(cells.rows)
    which = {**cell_asked(cell), **bounds(cells.rows)}
    # A stretch of plain decode does not end with its cell: asked without an end, as the Fleet page asks.
    stuck = stuck_now(**{name: value for name, value in which.items() if name != "to"})
    inflation = inflation_now(cells, **which)
    executions = answer("executions", limit=EXECUTIONS_MAX, **which)
    candidates = answer("candidates", limit=CANDIDATES_MAX, **which)
    st.markdown(cell_header(cell, viewer_zone()))
    verdict(cell, stuck.rows, inflation.rows)
    say_freshness(cells, cell.ended_at, live=is_running(cells.rows))
    ways_on(cell)
    told = story(clickhouse_url(), cell.service_instance_id, cell.cell)
    # In a place of its own: else one finding more would move what follows, and the browser draw all of it anew.
    with st.container():
        what_shows_it(told)
    shown: list[Known] = [cells, stuck, inflation, executions, candidates, told]
    if not executions.rows.empty:
        looked_at(cell, executions, candidates, told)
        shares(cell, executions)
    return shown


def cell_asked(cell: Row) -> dict[str, str]:
    """The parameters that name a cell."""
    return {"service_instance_id": cell.service_instance_id, "cell": cell.cell}


def page(instance: str, name: str) -> Answer:
    """The page of a cell, whatever is known of it."""
    cells = cell_answer(instance, name)
    problems = st.container()
    shown: list[Known] = [cells]
    if not cells.rows.empty:
        shown = draw(cells)
    elif cells.known:
        offer_cells(CELL_PAGE, NOT_STORED)
    with problems:
        say_problem(shown)
    return cells


@st.fragment(run_every=REFRESH_S)
def live(instance: str, name: str) -> None:
    """The page while the cell runs; once it has ended, the whole page is drawn a last time."""
    if not is_live(page(instance, name)):
        st.rerun()


@st.fragment
def ended(instance: str, name: str) -> None:
    """The page of a cell that has ended: a fragment too, so that it takes the place of the live one unseen."""
    page(instance, name)


st.title("What happened in this cell?", anchor=False)
asked = cell_named(CELL_PAGE, "Open a cell from the Fleet page, or one of these.")
if asked is not None:
    (live if is_live(cell_answer(*asked)) else ended)(*asked)
