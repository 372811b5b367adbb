"""Fleet: which engines are stuck in plain decode?"""

from datetime import datetime

import pandas as pd
import streamlit as st

from dashboards.charts.fleet_grid import COMPACT, ROOMY, SELECTION, finished_grid
from dashboards.links import CELL_PAGE, cell_parameters
from dashboards.parts.address import heed_number, heeded
from dashboards.parts.charted import show_chart
from dashboards.parts.controls import choose_of, control_bar
from dashboards.parts.noted import Noted, noted_about, say_noted
from dashboards.parts.notices import say_freshness, say_problem, viewer_zone
from dashboards.parts.time_range import choose_range, hold_button, show_all_time
from dashboards.questions.arrivals import seen_at
from dashboards.questions.fleet import (
    COMPACT_ABOVE,
    ORDERS,
    Filters,
    Fleet,
    engines_in,
    engines_shown,
    fleet,
    legend_words,
    on_page,
    ordered,
    pages_of,
    repeated_numbers,
    stuck_cells,
    told_of,
    worst_stretches,
)
from dashboards.questions.ranges import DEFAULT_RANGE, TimeRange, time_parameters
from dashboards.reading.answers import REFRESH_S, Answer
from dashboards.words.cells import beyond_words, clocks_sentence, fleet_sentence, repeats_sentence
from dashboards.words.tables import STUCK_ROWS_MAX, stretches_table, stuck_table

# A filter's name in the URL and in the catalogue, and the column of `engines` that has its choices.
# (A comment: Streamlit would show a string that stands by itself in a page.)
FILTERS = {"host": "host_name", "package": "engine_package", "recipe": "engine_recipe", "arm": "arms"}
FILTER_PX = 144


def offered(engines: pd.DataFrame) -> dict[str, list[str]]:
    """What each filter can be set to: what the engines have, and what the URL asks for."""
    found = {name: set() if engines.empty else set(engines[column].explode()) for name, column in FILTERS.items()}
    asked = {name: st.query_params.get(name, "") for name in FILTERS}
    return {
        name: sorted(str(value) for value in {*found[name], asked[name]} if value and not pd.isna(value))
        for name in FILTERS
    }


def choose(name: str, options: list[str]) -> str:
    """One filter, bound to the URL; '' is any."""
    label, nothing_chosen = name.capitalize(), f"any {name}"
    chosen = st.selectbox(
        label, options, index=None, placeholder=nothing_chosen, key=name, bind="query-params", width=FILTER_PX
    )
    return chosen or ""


def choose_concurrency() -> int:
    """The concurrency, bound to the URL; 0 is any."""
    heed_number("concurrency", 1)
    chosen = st.number_input(
        "Concurrency",
        min_value=1,
        value=None,
        step=1,
        placeholder="any",
        key="concurrency",
        bind="query-params",
        on_change=heeded,
        args=("concurrency",),
        width=FILTER_PX,
    )
    return int(chosen or 0)


def choose_order() -> str:
    """In which order the engines stand, bound to the URL."""
    return choose_of("Sorted by", "sort", ORDERS, FILTER_PX)


def grid(found: Fleet, filters: Filters, order: str, noted: Noted) -> None:
    """The grid of cells, a page of engines at a time; a click opens the cell's page."""
    cells = found.told.rows
    engines = ordered(cells, order)
    pages = pages_of(engines)
    page = st.pagination(pages, key="page", bind="query-params") if pages > 1 else 1
    shown = on_page(engines, page)
    size = ROOMY if len(shown) <= COMPACT_ABOVE else COMPACT
    event = show_chart(
        "fleet_grid",
        (filters, found.stretch_s, found.told.at, tuple(shown), noted.told.at),
        lambda: finished_grid(cells, shown, size, noted.marks),
        on_select="rerun",
        alt="Grid of cells by engine and time, coloured by the share of decoding time in plain decode",
    )
    say_noted(noted, found.told)
    st.caption(legend_words(found.stretch_s))
    for cell in event.selection.get(SELECTION, []):
        st.switch_page(CELL_PAGE, query_params=cell_parameters(cell["service_instance_id"], cell["cell"]))


def nothing(time_range: TimeRange, wanted: Filters) -> None:
    """What to do where there is no cell to show."""
    which = " that match these filters" if wanted else ""
    st.info(f"No graph executions {time_range.words}{which}.", icon=":material/inbox:")
    if time_range.since:
        if st.button("Show all stored time", on_click=show_all_time, icon=":material/history:"):
            st.rerun()  # The whole page: the filters are outside of what is live.
    elif not wanted:
        st.markdown(
            "Nothing has been stored yet. `make up` runs two engines to look at; `tachograph import FILE` reads a"
            " profiler's trace; `docs/contract.md` tells how an engine sends its own."
        )


def list_stuck(stuck: pd.DataFrame) -> None:
    """The stuck cells, worst first, each linked to its page."""
    if stuck.empty:
        return
    st.subheader("Stuck cells, worst first", anchor=False)
    st.markdown(stuck_table(stuck, viewer_zone()), unsafe_allow_html=True)
    if len(stuck) == STUCK_ROWS_MAX:
        st.caption(f"The worst {STUCK_ROWS_MAX}; `tachograph query stuck_plain` lists all.")


def newest(cells: pd.DataFrame) -> datetime:
    """When the newest execution completed, or arrived where a clock is ahead."""
    return seen_at(cells).max()


def overview(found: Fleet, time_range: TimeRange, filters: Filters, order: str) -> list[Answer]:
    """The sentence, the grid and the table; what the table rests on beside."""
    st.markdown(fleet_sentence(found.told.rows, time_range.words), unsafe_allow_html=True)
    if ahead := clocks_sentence(found.told.rows):
        st.warning(ahead, icon=":material/schedule:")
    repeated = repeated_numbers(filters)
    if together := repeats_sentence(repeated.rows, found.told.rows):
        st.warning(together, icon=":material/content_copy:")
    grid(found, filters, order, noted_about(found.told.rows, time_range))
    if time_range.is_held and (beyond := beyond_words(found.told.rows, time_range.since, time_range.until)):
        st.caption(beyond)
    say_freshness(found.told, newest(found.told.rows), live=not time_range.is_held)
    if found.stretch_s:
        stuck_stretches(worst_stretches(found.told.rows))
        return [repeated]
    stuck = stuck_cells(filters)
    list_stuck(told_of(found.told.rows, stuck.rows).head(STUCK_ROWS_MAX))
    return [repeated, stuck]


def stuck_stretches(stretches: pd.DataFrame) -> None:
    """The stretches with the most plain decode in stuck cells, each linked to its worst cell."""
    if stretches.empty:
        return
    st.subheader("Where most is lost", anchor=False)
    st.markdown(stretches_table(stretches, viewer_zone()), unsafe_allow_html=True)


@st.fragment(run_every=REFRESH_S)
def live(time_range: TimeRange, filters: Filters, order: str, options: dict[str, list[str]]) -> None:
    """Everything that changes while one looks."""
    engines = engines_in(time_range)
    if offered(engines_shown(engines, time_range)) != options:
        st.rerun()
    found = fleet(engines.rows, filters)
    problems = st.container()
    shown = [engines, found.told]
    if not found.told.rows.empty:
        shown += overview(found, time_range, filters, order)
    elif found.told.known:
        nothing(time_range, filters)
    with problems:
        say_problem(shown)


st.title("Which engines are stuck in plain decode?", anchor=False)
bar = control_bar()
with bar:
    chosen_range = choose_range(DEFAULT_RANGE, width=FILTER_PX)
# Asked outside of the bar: what is said while one waits would push its controls aside.
choices = offered(engines_shown(engines_in(chosen_range), chosen_range))
with bar:
    chosen_names = {name: choose(name, choices[name]) for name in FILTERS}
    chosen_filters = Filters(
        tuple(time_parameters(chosen_range).items()),
        tuple((name, value) for name, value in chosen_names.items() if value),
        choose_concurrency(),
        chosen_range.is_steady,
    )
    chosen_order = choose_order()
    hold_button(chosen_range, DEFAULT_RANGE)
live(chosen_range, chosen_filters, chosen_order, choices)
