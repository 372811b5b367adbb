"""Alerts as sentences and tables: pure functions, so that tests need no browser."""

from collections.abc import Sequence
from datetime import UTC, datetime, tzinfo

import pandas as pd

from dashboards.links import cell_address
from dashboards.reading.alerts import Alert, Kept, Standings
from dashboards.rows import Row, rows_of
from dashboards.words.markdown import Column, one_line, since, table, without_empty
from dashboards.words.texts import counted, escaped

ALERTS_MAX = 50
"""Alerts listed of each kind; `tachograph alerts list` has all of them."""
WORDS = {"no_data": "no data", "gone": "given up"}


def alerts_sentence(known: Standings) -> str:
    """How many fire, of what, and how many are silenced or pending."""
    firing = f"**{counted(len(known.firing), 'alert')} firing**" if known.firing else "**Nothing fires**"
    critical = sum(one.entry.labels.get("severity") == "critical" for one in known.firing)
    parts = [
        f"{critical:,} of them critical" if critical else "",
        f"{len(known.silenced):,} silenced" if known.silenced else "",
        f"{len(known.pending):,} pending" if known.pending else "",
    ]
    return ", ".join([firing, *(part for part in parts if part)]) + "."


def alerts_table(alerts: Sequence[Alert], zone: tzinfo) -> str:
    """One row an alert, each linked to its cell, or to the fleet where it is about none."""
    heads = [Column(name) for name in ("Alert", "Severity", "State", "Since", "What", "Host", "Finding")]
    return table(*without_empty(heads, [alert_row(one, zone) for one in alerts[:ALERTS_MAX]]))


def alert_row(alert: Alert, zone: tzinfo) -> list[str]:
    """One alert."""
    entry = alert.entry
    told = entry.annotations
    return [
        f"[{escaped(entry.rule)}]({address(entry.link)})" if entry.link else escaped(entry.rule),
        escaped(entry.labels.get("severity", "")),
        state_words(entry.standing.state),
        since(pd.Timestamp(entry.starts_at), zone, datetime.now(UTC)) if entry.starts_at else "",
        in_a_cell(told.get("summary", "")),
        one_line(entry.about.get("host_name") or entry.labels.get("host_name", "")),
        in_a_cell(told.get("finding", "")),
    ]


def in_a_cell(text: str) -> str:
    """Text that stays within a table's cell."""
    return escaped(" ".join(text.split()))


def address(link: str) -> str:
    """An alert's link, which is relative to the dashboards' root, as this page can follow it."""
    return f"./{link.lstrip('/')}"


def state_words(state: str) -> str:
    """A state, as a person says it."""
    return WORDS.get(state, state)


def silences_table(silences: Sequence[Kept], zone: tzinfo) -> str:
    """The silences in force."""
    now = datetime.now(UTC)
    rows = [
        [
            escaped(", ".join(str(matcher) for matcher in one.silence.matchers)),
            since(pd.Timestamp(one.silence.ends_at), zone, now),
            escaped(one.silence.created_by),
            in_a_cell(one.silence.comment),
            one.where,
        ]
        for one in silences
    ]
    return table([Column(name) for name in ("Silenced", "Until", "By", "Why", "Kept in")], rows)


def runbooks(alerts: Sequence[Alert]) -> dict[str, str]:
    """What to do, by rule."""
    return {one.entry.rule: one.entry.annotations["runbook"] for one in alerts if one.entry.annotations.get("runbook")}


def history_table(changes: pd.DataFrame, zone: tzinfo) -> str:
    """Rows of the query `alert_history`, each linked to its cell."""
    now = datetime.now(UTC)
    rows = [
        [
            since(one.changed_at, zone, now),
            escaped(one.alertname),
            f"{state_words(one.state)} (was {state_words(one.state_before)})",
            one_line(one.host_name),
            cell_link(one),
            in_a_cell(one.summary),
        ]
        for one in rows_of(changes)
    ]
    return table(*without_empty([Column(name) for name in ("When", "Alert", "Became", "Host", "Cell", "What")], rows))


def cell_link(change: Row) -> str:
    """The cell of a change, where it names one."""
    if not (change.cell and change.service_instance_id):
        return ""
    return f"[{escaped(change.cell)}]({cell_address(change.service_instance_id, change.cell)})"
