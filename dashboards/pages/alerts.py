"""Alerts: who needs somebody now?"""

from collections.abc import Sequence
from datetime import UTC, datetime

import streamlit as st

from dashboards.parts.controls import CONTROL_PX, control_bar
from dashboards.parts.notices import ago_text, say_problem, viewer_zone
from dashboards.parts.time_range import choose_range, hold_button
from dashboards.questions.ranges import TimeRange, bounds
from dashboards.reading.alerts import Alert, Standings, standings
from dashboards.reading.answers import REFRESH_S, Answer, answer
from dashboards.words.alerts import (
    ALERTS_MAX,
    alerts_sentence,
    alerts_table,
    history_table,
    no_changes_sentence,
    runbooks,
    silences_table,
)
from dashboards.words.texts import escaped
from engine_hooks.commands.counting import counted

HISTORY_RANGES = ["2 h", "24 h", "7 d"]
HISTORY_DEFAULT = "24 h"
HISTORY_MAX = 100


def verdict(known: Standings) -> None:
    """How many fire, in a sentence; and whether somebody looks at all."""
    if known.evaluated_at is None:
        st.info(
            "No evaluator of alerts ran on this data directory, so what fires now is not known here:"
            " `tachograph alerts run` is one. What others stored stands in the history.",
            icon=":material/notifications_off:",
        )
        return
    if known.is_late(datetime.now(UTC)):
        st.error(
            f"The evaluator last looked {ago_text(known.evaluated_at)}: nobody is woken now."
            " Start it with `tachograph alerts run`.",
            icon=":material/notifications_off:",
        )
    show = st.warning if known.firing else st.success
    show(alerts_sentence(known), icon=":material/notifications_active:" if known.firing else ":material/check:")
    st.caption(f"Last evaluated {ago_text(known.evaluated_at)}")


def listed(title: str, alerts: Sequence[Alert]) -> None:
    """Alerts of one kind, if there are any."""
    if not alerts:
        return
    st.subheader(title, anchor=False)
    st.markdown(alerts_table(alerts, viewer_zone()), unsafe_allow_html=True)
    if len(alerts) > ALERTS_MAX:
        st.caption(f"{ALERTS_MAX} of {counted(len(alerts), 'alert')}; `tachograph alerts list` shows all.")


def now_known(known: Standings) -> None:
    """Everything that is not inactive, and what to do about it."""
    listed("Firing", known.firing)
    for rule, runbook in runbooks(known.firing).items():
        with st.expander(f"What to do about {escaped(rule)}", icon=":material/menu_book:", key=f"runbook_{rule}"):
            st.markdown(runbook)
    listed("Pending, or without data", known.pending)
    listed("Firing, but silenced", known.silenced)
    listed("Ended in the last minutes", known.ended)
    if known.silences:
        st.subheader("Silences in force", anchor=False)
        st.markdown(silences_table(known.silences, viewer_zone()), unsafe_allow_html=True)


def history(changes: Answer, words: str, alert: str, host: str) -> None:
    """What became of alerts."""
    if not changes.known:
        return
    if changes.rows.empty:
        st.caption(no_changes_sentence(words, alert=alert, host=host))
        return
    st.markdown(history_table(changes.rows, viewer_zone()), unsafe_allow_html=True)
    if len(changes.rows) == HISTORY_MAX:
        st.caption(f"The latest {HISTORY_MAX}; `tachograph alerts history` lists more.")


@st.fragment(run_every=REFRESH_S)
def live_now() -> None:
    """Where alerts stand."""
    known = standings()
    say_problem([known])
    if known.at is not None:
        verdict(known)
        now_known(known)


@st.fragment(run_every=REFRESH_S)
def live_history(time_range: TimeRange, alert: str, host: str) -> None:
    """What became of them."""
    changes = answer("alert_history", alert=alert, host=host, limit=HISTORY_MAX, **bounds(time_range))
    say_problem([changes])
    history(changes, time_range.words, alert, host)


def typed(label: str, key: str) -> str:
    """A filter that is typed, bound to the URL; '' is any."""
    told: str = st.text_input(label, placeholder=f"any {label.lower()}", key=key, bind="query-params", width=CONTROL_PX)
    return told.strip()


st.title("Who needs somebody now?", anchor=False)
live_now()
st.subheader("History", anchor=False)
with control_bar():
    chosen = choose_range(HISTORY_DEFAULT, HISTORY_RANGES, width=CONTROL_PX)
    alert_name = typed("Alert", "alert")
    host_name = typed("Host", "alert_host")
    hold_button(chosen, HISTORY_DEFAULT)
live_history(chosen, alert_name, host_name)
