"""Health: does everything that engines send arrive?"""

import streamlit as st

from dashboards.charts.ingest import ingest
from dashboards.parts.notices import ago_text, say_problem, viewer_zone
from dashboards.reading.alerts import silence_conditions
from dashboards.reading.answers import REFRESH_S, Answer, answer, slow_answer
from dashboards.reading.collector import Collected, collector
from dashboards.words.health import (
    behind_s,
    clocks_table,
    figures,
    health_sentence,
    hosts_off,
    ingest_rates,
    ledger_table,
    losses_table,
    refusals_table,
    silence_sentence,
    silent_only,
    silent_table,
    turned_away_sentence,
)
from dashboards.words.texts import escaped, with_code
from engine_hooks.commands.counting import counted

LOOK_BACK = "-1d"
ROWS_MAX = 20
FIGURE_PX = 168


def say_collector_problem(collected: Collected) -> None:
    """Where the collector does not answer: what is wrong, and how old what stands here is."""
    if not collected.problem:
        return
    stands_in = f"Its figures are of {ago_text(collected.at)}" if collected.at else "What ClickHouse knows stands below"
    st.warning(
        f"{with_code(collected.problem)}. {stands_in}; this page tries again by itself.", icon=":material/cloud_off:"
    )


def verdict(collected: Collected, silent: Answer) -> None:
    """Whether all is well, in a sentence; before it, that senders are turned away."""
    if full := turned_away_sentence(collected):
        st.error(full, icon=":material/block:")
    if collected.known:
        well = not collected.troubles and not collected.problem and silent.rows.empty
        show = st.success if well else st.warning
        show(health_sentence(collected, silent.rows), icon=":material/check:" if well else ":material/flag:")
    elif silent.known:
        st.info(silence_sentence(silent.rows), icon=":material/monitor_heart:")


def head_line(collected: Collected) -> None:
    """The figures that one looks at first."""
    with st.container(horizontal=True):
        for figure in figures(collected):
            st.metric(figure.name, figure.value, help=figure.meaning, border=True, width=FIGURE_PX)


def coming_in(collected: Collected) -> None:
    """How fast it comes."""
    rates = ingest_rates(collected.samples)
    if rates["at"].nunique() < 2:  # one rate is no line
        st.caption("The rates appear with the third reading.")
        return
    st.altair_chart(ingest(rates), key="ingest", alt="Spans received and executions stored each second")
    st.caption("Between one reading of the collector's ledger and the next, since somebody looks at this page.")


def of_collector(collected: Collected) -> None:
    """Everything that only the collector knows."""
    head_line(collected)
    st.subheader("What comes in", anchor=False)
    coming_in(collected)
    st.subheader("Refused, by reason, since the collector started", anchor=False)
    if collected.refusals.empty:
        st.caption("Nothing.")
    else:
        st.markdown(refusals_table(collected.refusals))
    st.subheader("Ledger, in spans, since the spool was made", anchor=False)
    if collected.state["ledger"]:
        st.markdown(ledger_table(collected.state))
    else:
        st.caption("Nothing was received yet.")
    version = escaped(collected.state.get("version", ""))
    st.caption(f"Told by the collector {ago_text(collected.at)} · version {version}")


def of_store(silent: Answer, skew: Answer, steady: Answer, gaps: Answer) -> None:
    """Everything that ClickHouse knows."""
    zone = viewer_zone()
    for title, known, rows, told, none in (
        ("Engines that fell silent", silent.known, silent.rows, silent_table, "None of the last hour."),
        (
            "Clocks that are off",
            skew.known,
            hosts_off(skew.rows, steady.rows),
            clocks_table,
            "None by more than 5 s, in the last day.",
        ),
        ("Lost on the way", gaps.known, gaps.rows, losses_table, "No gap of graph sequence in the last day."),
    ):
        if known:
            st.subheader(title, anchor=False)
            st.markdown(none if rows.empty else told(rows.head(ROWS_MAX), zone), unsafe_allow_html=True)
            if len(rows) > ROWS_MAX:
                st.caption(f"{ROWS_MAX} of {counted(len(rows), 'row')}.")
    if len(gaps.rows) == ROWS_MAX:
        st.caption(f"The latest {ROWS_MAX}; `tachograph query sequence_gaps` lists all.")


@st.fragment(run_every=REFRESH_S)
def live() -> None:
    """The whole page."""
    collected = collector()
    asked = answer("silent_engines")
    silent = Answer(silent_only(asked.rows, silence_conditions(), behind_s(collected)), asked.at, asked.problem)
    skew = slow_answer("clock_skew", from_=LOOK_BACK)
    steady = slow_answer("skewed_clocks")
    gaps = slow_answer("sequence_gaps", from_=LOOK_BACK, limit=ROWS_MAX)
    say_collector_problem(collected)
    say_problem([silent, skew, steady, gaps])
    verdict(collected, silent)
    if collected.known:
        of_collector(collected)
    # Where the collector is away, nobody can tell whose silence it is.
    of_store(silent if not (collected.known and collected.problem) else Answer(), skew, steady, gaps)


st.title("Does everything that engines send arrive?", anchor=False)
live()
