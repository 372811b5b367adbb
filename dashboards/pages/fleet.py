"""Fleet: which engines are stuck in plain decode?"""

from datetime import datetime

import pandas as pd
import streamlit as st

from dashboards.answers import REFRESH_S, Answer, answer
from dashboards.charts.fleet_grid import SELECTION, fleet_grid
from dashboards.notices import say_freshness, say_problem, viewer_zone
from dashboards.ranges import ALL_TIME, DEFAULT_RANGE, RANGES, TimeRange
from dashboards.tables import STUCK_ROWS_MAX, stuck_table
from dashboards.words import fleet_sentence

# A filter's name in the URL and in the catalogue, and the column of `engines` that has its choices.
# (A comment: Streamlit would show a string that stands by itself in a page.)
FILTERS = {"host": "host_name", "package": "engine_package", "recipe": "engine_recipe"}


def choices(engines: pd.DataFrame, name: str) -> list[str]:
    """What a filter can be set to: what the engines have, and what the URL asks for."""
    asked = st.query_params.get(name, "")
    if engines.empty:
        return [asked] if asked else []
    found = engines.arms.explode().dropna() if name == "arm" else engines[FILTERS[name]]
    return sorted({*(str(value) for value in found if value), *([asked] if asked else [])})


def filters(engines: pd.DataFrame) -> tuple[TimeRange, dict[str, str]]:
    """The bar of filters, each bound to the URL."""
    bar = st.columns([1, 1, 1, 1, 1])
    chosen = bar[0].selectbox(
        "Time range, up to now",
        list(RANGES),
        index=list(RANGES).index(DEFAULT_RANGE),
        key="range",
        bind="query-params",
    )
    wanted = {}
    for column, name in zip(bar[1:], [*FILTERS, "arm"], strict=True):
        wanted[name] = column.selectbox(
            name.capitalize(),
            choices(engines, name),
            index=None,
            placeholder=f"any {name}",
            key=name,
            bind="query-params",
        )
    return RANGES[chosen or DEFAULT_RANGE], {name: value for name, value in wanted.items() if value}


def asked(time_range: TimeRange, wanted: dict[str, str]) -> dict[str, str]:
    """The parameters of a question about what is chosen."""
    return ({"from_": time_range.since} if time_range.since else {}) | wanted


def grid(cells: pd.DataFrame) -> None:
    """The grid of cells; a click opens the cell's page."""
    event = st.altair_chart(
        fleet_grid(cells),
        key="fleet_grid",
        on_select="rerun",
        alt="Grid of cells by engine and time, coloured by the share of decoding time in plain decode",
    )
    picked = event.selection.get(SELECTION) or []
    if picked:
        cell = picked[0]
        st.switch_page("pages/cell.py", query_params={"engine": cell["service_instance_id"], "cell": cell["cell"]})


def nothing(time_range: TimeRange, wanted: dict[str, str], engines: Answer) -> None:
    """What to do where there is no cell to show."""
    which = " that match these filters" if wanted else ""
    st.info(f"No graph executions {time_range.words}{which}.", icon=":material/inbox:")
    if time_range.since:
        st.page_link("pages/fleet.py", label="Show all stored time", query_params={"range": ALL_TIME}, icon=":material/history:")
    elif not wanted and engines.known:
        st.markdown(
            "Nothing has been stored yet. `make up` runs two engines to look at; `tachograph import FILE` reads a"
            " profiler's trace; `docs/contract.md` tells how an engine sends its own."
        )


def newest(cells: pd.DataFrame) -> datetime | None:
    """When the newest execution completed."""
    return None if cells.empty else cells.ended_at.max()


def stuck_cells(time_range: TimeRange, wanted: dict[str, str]) -> Answer:
    """The table of stuck cells, worst first, each linked to its page."""
    stuck = answer("stuck_plain", limit=STUCK_ROWS_MAX, **asked(time_range, wanted))
    if not stuck.rows.empty:
        st.subheader("Stuck cells, worst first", anchor=False)
        st.markdown(stuck_table(stuck.rows, viewer_zone()))
    return stuck


@st.fragment(run_every=REFRESH_S)
def live(time_range: TimeRange, wanted: dict[str, str], engines: Answer) -> None:
    """Everything that changes while one looks."""
    cells = answer("cells", **asked(time_range, wanted))
    problems = st.container()
    if cells.rows.empty:
        if cells.known:
            nothing(time_range, wanted, engines)
        with problems:
            say_problem([cells])
        return
    st.markdown(fleet_sentence(cells.rows, time_range.words))
    grid(cells.rows)
    say_freshness(cells, newest(cells.rows))
    stuck = stuck_cells(time_range, wanted)
    with problems:
        say_problem([cells, stuck])


st.title("Which engines are stuck in plain decode?", anchor=False)
chosen_engines = answer("engines")
live(*filters(chosen_engines.rows), chosen_engines)
