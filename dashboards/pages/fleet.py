"""Fleet: which engines are stuck in plain decode?"""

from datetime import datetime

import pandas as pd
import streamlit as st

from dashboards.answers import REFRESH_S, Answer, answer
from dashboards.charts.fleet_grid import SELECTION, fleet_grid
from dashboards.links import CELL_PAGE, cell_parameters
from dashboards.noted import Noted, noted_about, say_noted
from dashboards.notices import say_freshness, say_problem, viewer_zone
from dashboards.ranges import ALL_TIME, DEFAULT_RANGE, RANGES, TimeRange
from dashboards.tables import STUCK_ROWS_MAX, stuck_table
from dashboards.words import fleet_sentence

# A filter's name in the URL and in the catalogue, and the column of `engines` that has its choices.
# (A comment: Streamlit would show a string that stands by itself in a page.)
FILTERS = {"host": "host_name", "package": "engine_package", "recipe": "engine_recipe", "arm": "arms"}


def since(time_range: TimeRange) -> dict[str, str | int]:
    """The parameters of a question about a time range."""
    return {"from_": time_range.since} if time_range.since else {"last_s": 0}


def offered(engines: pd.DataFrame) -> dict[str, list[str]]:
    """What each filter can be set to: what the engines have, and what the URL asks for."""
    found = {name: set() if engines.empty else set(engines[column].explode()) for name, column in FILTERS.items()}
    asked = {name: st.query_params.get(name, "") for name in FILTERS}
    return {
        name: sorted(str(value) for value in {*found[name], asked[name]} if value and not pd.isna(value))
        for name in FILTERS
    }


def choose_range() -> TimeRange:
    """The time range, bound to the URL."""
    index = list(RANGES).index(DEFAULT_RANGE)
    name = st.selectbox("Time range, up to now", list(RANGES), index=index, key="range", bind="query-params")
    return RANGES[name or DEFAULT_RANGE]


def choose(name: str, options: list[str]) -> str:
    """One filter, bound to the URL; '' is any."""
    chosen = st.selectbox(
        name.capitalize(), options, index=None, placeholder=f"any {name}", key=name, bind="query-params"
    )
    return chosen or ""


def grid(cells: pd.DataFrame, noted: Noted) -> None:
    """The grid of cells; a click opens the cell's page."""
    event = st.altair_chart(
        fleet_grid(cells, noted.marks),
        key="fleet_grid",
        on_select="rerun",
        alt="Grid of cells by engine and time, coloured by the share of decoding time in plain decode",
    )
    say_noted(noted)
    st.caption(
        "Red along a cell's upper edge: stuck in plain decode. Along its lower edge: inflated estimates turned decisions."
        " Grey: no speculative graph to choose from, or no decoding. Click a cell to open it."
    )
    for cell in event.selection.get(SELECTION, []):
        st.switch_page(CELL_PAGE, query_params=cell_parameters(cell["service_instance_id"], cell["cell"]))


def show_all_time() -> None:
    """Choose all time, as if the viewer had."""
    st.session_state["range"] = ALL_TIME


def nothing(time_range: TimeRange, wanted: dict[str, str]) -> None:
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


def stuck_cells(stuck: pd.DataFrame) -> None:
    """The stuck cells, worst first, each linked to its page."""
    if stuck.empty:
        return
    st.subheader("Stuck cells, worst first", anchor=False)
    st.markdown(stuck_table(stuck, viewer_zone()))
    if len(stuck) == STUCK_ROWS_MAX:
        st.caption(f"The worst {STUCK_ROWS_MAX}; `tachograph query stuck_plain` lists all.")


def newest(cells: pd.DataFrame) -> datetime:
    """When the newest execution completed."""
    return cells.ended_at.max()  # type: ignore[no-any-return]


def overview(cells: Answer, time_range: TimeRange, wanted: dict[str, str]) -> Answer:
    """The sentence, the grid and the table."""
    st.markdown(fleet_sentence(cells.rows, time_range.words))
    grid(cells.rows, noted_about(cells.rows, time_range))
    say_freshness(cells, newest(cells.rows))
    stuck = answer("stuck_plain", limit=STUCK_ROWS_MAX, **since(time_range), **wanted)
    stuck_cells(stuck.rows)
    return stuck


@st.fragment(run_every=REFRESH_S)
def live(time_range: TimeRange, wanted: dict[str, str], options: dict[str, list[str]]) -> None:
    """Everything that changes while one looks."""
    engines = answer("engines", **since(time_range))
    if offered(engines.rows) != options:
        st.rerun()
    cells = answer("cells", **since(time_range), **wanted)
    problems = st.container()
    shown = [engines, cells]
    if not cells.rows.empty:
        shown.append(overview(cells, time_range, wanted))
    elif cells.known:
        nothing(time_range, wanted)
    with problems:
        say_problem(shown)


st.title("Which engines are stuck in plain decode?", anchor=False)
bar = st.columns(1 + len(FILTERS))
with bar[0]:
    chosen_range = choose_range()
choices = offered(answer("engines", **since(chosen_range)).rows)
chosen = {}
for column, filter_name in zip(bar[1:], FILTERS, strict=True):
    with column:
        chosen[filter_name] = choose(filter_name, choices[filter_name])
live(chosen_range, {name: value for name, value in chosen.items() if value}, choices)
