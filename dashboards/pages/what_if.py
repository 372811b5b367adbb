"""What if: what would another cost model have done with this cell?"""

import streamlit as st

from dashboards.charts.palette import graph_colours
from dashboards.charts.replayed_choices import replayed_choices
from dashboards.charts.simulated_runs import simulated_runs
from dashboards.charts.times import AXIS_WIDTH_PX
from dashboards.links import CELL_PAGE, WHAT_IF_PAGE, cell_parameters
from dashboards.parts.cell_chooser import NOT_STORED, cell_named, offer_cells
from dashboards.parts.charted import show_chart
from dashboards.parts.controls import choose_one
from dashboards.parts.noted import noted_about, say_noted
from dashboards.parts.notices import say_freshness, say_problem, viewer_zone
from dashboards.questions.cells import EXECUTIONS_MAX, window
from dashboards.questions.ranges import held_range
from dashboards.questions.verdicts import cells_now
from dashboards.reading.answers import Answer, answer
from dashboards.reading.outcomes import Outcome, exact_replay, simulated_replay
from dashboards.reading.store import clickhouse_url
from dashboards.rows import Row, first_row
from dashboards.words.cells import cell_header
from dashboards.words.refusals import refusal_words
from dashboards.words.replays import replay_sentence, swap_table
from dashboards.words.texts import escaped
from engine_hooks.cost_model.registry import COST_MODELS
from queries.replay.result import Replay
from queries.replay.screen import checks
from queries.replay.words import caveats, first_difference, worth

USUAL_MODEL = "drained_share"
MODEL_PX = 300


def header(cell: Row, instance: str, name: str) -> None:
    """Whose cell it is, and the way to it."""
    st.markdown(cell_header(cell, viewer_zone()))
    st.page_link(
        CELL_PAGE,
        label="What happened in this cell",
        icon=":material/timeline:",
        query_params=cell_parameters(instance, name),
    )


def exact_form(outcome: Outcome[Replay], cells: Answer) -> None:
    """Each decision again."""
    replay = outcome.value
    exact = None if replay is None else replay.exact
    if replay is None or exact is None:
        return
    instance, name = str(cells.rows.service_instance_id.iloc[0]), str(cells.rows.cell.iloc[0])
    st.subheader("Each decision again, with what was known then", anchor=False)
    told = replay_sentence(replay, exact)
    if exact.different:
        st.warning(told, icon=":material/alt_route:")
        st.markdown(escaped(first_difference(replay)))
    else:
        st.success(told, icon=":material/check:")
    noted = noted_about(cells.rows, held_range(cells.rows.started_at.min(), cells.rows.ended_at.max(), ""))
    say_noted(noted, cells, outcome)
    executions = answer("executions", service_instance_id=instance, cell=name, limit=EXECUTIONS_MAX, **window(name))
    colours = {} if executions.rows.empty else graph_colours(executions.rows)
    with st.container(horizontal=True):
        show_chart(
            "replayed_choices",
            (instance, name, replay.cost_model, outcome.at, executions.at, noted.told.at),
            lambda: replayed_choices(replay, exact, colours, noted.marks),
            alt="What was chosen and what would have been chosen, and what each graph was charged, over time",
        )
        # Streamlit stretches the plotting areas to the container and leaves no room for their axes.
        st.space(AXIS_WIDTH_PX)
    st.caption(
        "Drag across the lanes to zoom, double-click them to see everything. Dashed: charged as recorded; solid: by"
        f" {escaped(replay.cost_model)}."
    )
    if exact.different:
        st.markdown(swap_table(exact), unsafe_allow_html=True)
    for caveat in caveats(replay):
        st.caption(escaped(caveat))


def simulation(outcome: Outcome[Replay]) -> None:
    """What it would have been worth."""
    say_problem([outcome])
    if outcome.refusal:
        st.info(f"This cell cannot be simulated: {refusal_words(outcome.refusal)}.", icon=":material/inbox:")
    replay = outcome.value
    if replay is None or replay.closed_loop is None:
        return
    loop = replay.closed_loop
    st.info(escaped(worth(loop, replay.cost_model)), icon=":material/science:")
    rests_on = replay.service_instance_id, replay.cell, replay.cost_model, outcome.at
    show_chart("simulated_runs", rests_on, lambda: simulated_runs(replay, loop), alt="Simulated runs as dots, by kind")
    st.caption(
        f"A simulation fitted to this cell, {len(loop.runs)} runs of each kind. Bar: in there one run of this cell would"
        f" lie, 95 times out of 100. Check: {escaped('; '.join(checks(replay, loop)))}."
    )
    for note in loop.notes:
        st.caption(escaped(f"Note: {note}."))


def page(instance: str, name: str) -> None:
    """The page of a cell."""
    cells = cells_now(service_instance_id=instance, cell=name, **window(name))
    cell = first_row(cells.rows)
    if cell is None:
        say_problem([cells])
        if cells.known:
            offer_cells(WHAT_IF_PAGE, NOT_STORED)
        return
    header(cell, instance, name)
    model = choose_one("Cost model in place of the recorded one", "model", list(COST_MODELS), USUAL_MODEL, MODEL_PX)
    outcome = exact_replay(clickhouse_url(), instance, name, model)
    say_problem([cells, outcome])
    if outcome.refusal:
        st.info(f"Nothing to replay: {refusal_words(outcome.refusal)}.", icon=":material/inbox:")
    if outcome.value is None:
        return
    exact_form(outcome, cells)
    st.subheader("What it would have been worth", anchor=False)
    if st.toggle("Simulate it: takes some seconds, and states its error", key="simulate", bind="query-params"):
        simulation(simulated_replay(clickhouse_url(), instance, name, model))
    say_freshness(outcome, None, live=False)


st.title("What would another cost model have done?", anchor=False)
asked = cell_named(WHAT_IF_PAGE, "Open a cell from the Cell page, or one of these.")
if asked is not None:
    page(*asked)
