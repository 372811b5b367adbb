"""Graphs: what does each graph cost, and has that changed?"""

from collections.abc import Sequence
from typing import NamedTuple

import pandas as pd
import streamlit as st

from dashboards.charts.graph_spread import GPU_TIME, HANDOFF, graph_spread
from dashboards.charts.graph_steps import graph_steps
from dashboards.charts.series_colours import named_series
from dashboards.parts.charted import show_chart
from dashboards.parts.controls import CONTROL_PX, choose_any, choose_of, control_bar
from dashboards.parts.noted import noted_about, say_noted
from dashboards.parts.notices import say_freshness, say_problem, viewer_zone
from dashboards.parts.time_range import choose_range, hold_button, show_all_time
from dashboards.questions.measures import (
    MEASURES,
    ROWS_MAX,
    Measure,
    graphs_in,
    history,
    of_graph,
    steps_of,
    up_to_arrival,
)
from dashboards.questions.ranges import EVER, TimeRange, time_parameters
from dashboards.reading.answers import Answer, answer, slow_answer
from dashboards.reading.outcomes import Outcome, Search, changes
from dashboards.reading.store import clickhouse_url
from dashboards.words.changes import (
    changes_sentence,
    changes_table,
    comparable,
    costs_table,
    drift_table,
    drifting,
    nothing_sentence,
    too_little_sentence,
)
from dashboards.words.refusals import refusal_words
from dashboards.words.texts import escaped
from queries.annotations.marks import Mark
from queries.changes.detection import SHIFT_MIN_PERCENT
from queries.changes.found import Change
from queries.changes.shown import clocks_line

USUAL_RANGE = "7 d"
GRAPHS_MAX = 8
LIVE_S = 30
COSTS_MAX = 200


def nothing(told: str, time_range: TimeRange) -> None:
    """What to do where there is nothing to show."""
    st.info(told, icon=":material/inbox:")
    if time_range.since and st.button("Show all stored time", on_click=show_all_time, icon=":material/history:"):
        st.rerun()  # The whole page: the filters are outside of what is live.


def matching(found: Search, host: str, graph: str) -> Search:
    """What a search came to on what is looked at."""

    def is_looked_at(labels: tuple[str, ...]) -> bool:
        return (not host or labels[0] == host) and (not graph or labels[1] == graph)

    return Search(
        [change for change in found.changes if is_looked_at(change.labels)],
        tuple(extent for extent in found.extents if is_looked_at(extent.labels)),
    )


def level_changes(measure: Measure, time_range: TimeRange) -> Outcome[Search]:
    """Changes of level in the whole fleet; none are looked for in estimates."""
    if measure.changes_in is None:
        return Outcome()
    time = time_range.since or EVER, time_range.until or None
    return changes(clickhouse_url(), str(measure.changes_in), time, SHIFT_MIN_PERCENT)


def headline(measure: Measure, found: Search, time_range: TimeRange) -> None:
    """What changed, in a sentence; nothing did only where there was enough to look through."""
    told = found.changes
    sentence = changes_sentence(told, measure.words, time_range.words, viewer_zone())
    if told:
        st.warning(sentence, icon=":material/trending_up:")
        st.markdown(changes_table(told, viewer_zone()), unsafe_allow_html=True)
    elif any(extent.is_enough for extent in found.extents):
        st.success(sentence, icon=":material/check:")
    else:
        st.info(too_little_sentence(found.extents, measure.words), icon=":material/hourglass_empty:")


def level_headline(measure: Measure, found: Outcome[Search], host: str, graph: str, time_range: TimeRange) -> Search:
    """The headline, where changes are looked for and could be; what they are, on what is looked at."""
    if found.refusal:
        st.info(f"Changes of level were not looked for: {refusal_words(found.refusal)}.", icon=":material/inbox:")
    if found.value is None:
        return Search([], ())
    mine = matching(found.value, host, graph)
    headline(measure, mine, time_range)
    return mine


class Drawn(NamedTuple):
    """What the charts of every graph are drawn from."""

    measure: Measure
    steps: pd.DataFrame
    spread: pd.DataFrame
    named: list[str]
    told: Sequence[Change]
    noted: Sequence[Mark]
    rests_on: tuple[object, ...]
    """What was asked, and when the answers were had."""


def one_graph(graph: str, drawn: Drawn) -> None:
    """One graph: over time, and how it is spread."""
    st.subheader(escaped(graph), anchor=False)
    wide, narrow = st.columns([3, 2])
    measure = drawn.measure
    with wide:
        mine = [change for change in drawn.told if change.labels[1] == graph]
        show_chart(
            f"steps_{graph}",
            drawn.rests_on,
            lambda: graph_steps(drawn.steps[drawn.steps.graph == graph], drawn.named, mine, measure.words, drawn.noted),
            alt=f"{measure.words} of {graph} over time, a point for each step of each engine",
        )
    rows = drawn.spread[drawn.spread.graph_name == graph] if not drawn.spread.empty else drawn.spread
    if rows.empty:
        return
    which, words = (HANDOFF, "handoff") if measure.words == "handoff" else (GPU_TIME, "GPU time")
    with narrow:
        show_chart(
            f"spread_{graph}",
            drawn.rests_on,
            lambda: graph_spread(rows, drawn.named, which, words),
            alt=f"Spread of the {words} of {graph} by host and package",
        )


def drift(wanted: dict[str, str]) -> Answer:
    """What has crept up on us."""
    answered = slow_answer("live_drift", last_s=3600, history_s=604_800, **wanted)
    if answered.rows.empty:
        # Nobody settles the hours of this store: they are added up on the spot.
        answered = slow_answer("gpu_time_drift", last_s=3600, history_s=604_800, **wanted)
    enough = comparable(answered.rows)
    told = drifting(enough)
    st.subheader("Drift of GPU time", anchor=False)
    if answered.known and enough.empty:
        st.caption("Too little is stored to compare the newest hour with the week before.")
    elif told.empty:
        st.caption(
            "In the newest hour no graph is off its mean of the week before by 1 % or more, beyond what its cells differ by."
        )
    else:
        st.markdown(drift_table(told), unsafe_allow_html=True)
        st.caption("Means of the newest hour against those of the week before, on the same engine; ▲ is slower.")
    return answered


def draw(drawn: Drawn, graphs: Sequence[str]) -> None:
    """A row of charts for each graph."""
    st.caption(
        f"Over time: {drawn.measure.of_step} of each step, a point for each engine; dashed red: a change of level."
        " Spread: bar from the 10th (handoff: 50th) to the 90th percentile of single executions, line on to the 99th,"
        " mark at the median; red diamond: mean estimate."
    )
    for name in graphs[:GRAPHS_MAX]:
        one_graph(name, drawn)
    if len(graphs) > GRAPHS_MAX:
        st.caption(f"Drawn are the {GRAPHS_MAX} graphs that took most GPU time; choose another above.")


@st.fragment(run_every=LIVE_S)
def live(measure: Measure, time_range: TimeRange, wanted: dict[str, str], graph: str) -> None:
    """Everything that changes while one looks."""
    engines = answer("engines", **time_parameters(time_range), **wanted)
    rows = history(measure, time_range, wanted)
    costs = answer("graph_costs", limit=COSTS_MAX, **time_parameters(time_range), **wanted)
    spread = answer("handoffs", **time_parameters(time_range), **wanted) if measure.words == "handoff" else costs
    found = level_changes(measure, time_range)
    problems = st.container()
    shown: list[Answer | Outcome[Search]] = [engines, rows, costs, spread, found]
    steps, ahead_s = up_to_arrival(steps_of(rows.rows, engines.rows, measure), engines.rows, time_range)
    if ahead_s:
        st.warning(f"{escaped(clocks_line(ahead_s))}; set the clock by NTP.", icon=":material/schedule:")
    graphs = [name for name in graphs_in(steps, costs.rows) if not graph or name == graph]
    if graphs:
        told = level_headline(measure, found, wanted.get("host", ""), graph, time_range).changes
        noted = noted_about(engines.rows, time_range)
        say_noted(noted, engines, rows)
        rests_on = (
            measure.words,
            time_range,
            tuple(wanted.items()),
            *(one.at for one in (rows, spread, found, noted.told)),
        )
        draw(Drawn(measure, steps, spread.rows, named_series(steps), told, noted.marks, rests_on), graphs)
        shown.append(drift(wanted))
        with st.expander("The figures, ms", icon=":material/table:"):
            st.markdown(costs_table(costs.rows), unsafe_allow_html=True)
        if len(rows.rows) == ROWS_MAX:
            st.caption(f"Only the first {ROWS_MAX:,} steps are drawn: choose a host, or a shorter time.")
        say_freshness(rows, None, live=not time_range.is_held)
    elif rows.known:
        filtered = {**wanted, "graph": graph}
        has_executions = not of_graph(rows.rows, graph).empty
        nothing(nothing_sentence(filtered, measure.words, time_range.words, has_executions=has_executions), time_range)
    with problems:
        say_problem(shown)


def stored(engines: pd.DataFrame, column: str) -> list[str]:
    """What a filter can be set to."""
    return [] if engines.empty else sorted({str(value) for value in engines[column].explode().dropna() if value})


st.title("What does each graph cost, and has that changed?", anchor=False)
bar = control_bar()
with bar:
    chosen_range = choose_range(USUAL_RANGE, width=CONTROL_PX)
# Asked outside of the bar: what is said while one waits would push its controls aside.
known_engines = answer("engines", **time_parameters(chosen_range)).rows
with bar:
    chosen_measure = MEASURES[choose_of("Measure", "measure", list(MEASURES))]
    chosen_host = choose_any("Host", "host", stored(known_engines, "host_name"))
    chosen_package = choose_any("Package", "package", stored(known_engines, "engine_package"))
    chosen_graph = choose_any("Graph", "graph", stored(known_engines, "graphs"))
    hold_button(chosen_range, USUAL_RANGE)
filters = {"host": chosen_host, "package": chosen_package}
live(chosen_measure, chosen_range, {name: value for name, value in filters.items() if value}, chosen_graph)
