"""Alerts as sentences and tables: pure functions, so that tests need no browser."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, tzinfo

import pandas as pd

from dashboards.links import cell_address
from dashboards.reading.alerts import Alert, Kept, Standings
from dashboards.rows import Row, rows_of
from dashboards.words.markdown import Column, one_line, prose, short, since, table, without_empty
from dashboards.words.texts import clock, escaped, short_of
from engine_hooks.commands.counting import counted
from queries.alerts.states import State

ALERTS_MAX = 50
"""Alerts listed of each kind; `tachograph alerts list` has all of them."""
WORDS = {"no_data": "no data", "gone": "given up"}
FINDING_MIN_REM = 20
"""Of many lines: on a telephone no wider than what is left of it once one scrolls there."""
OVERLONG = re.compile(r"\b([\w.-]{18})[\w.-]{5,}([\w.-]{18})(?![\w.-])")
"""A name of more than 40 letters, its two ends apart; a UUID has 36."""
UTC_TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC")
"""A time of day as rules and findings write it."""


def alerts_sentence(known: Standings) -> str:
    """How many fire, of what, and how many are silenced or pending."""
    firing = f"**{counted(len(known.firing), 'alert')} firing**" if known.firing else "**Nothing fires**"
    critical = sum(one.entry.labels.get("severity") == "critical" for one in known.firing)
    unheard = sum(one.entry.standing.state == State.NO_DATA for one in known.firing)
    parts = [
        f"{critical:,} of them critical" if critical else "",
        f"{unheard:,} of them without data now" if unheard else "",
        f"{len(known.silenced):,} silenced" if known.silenced else "",
        f"{len(known.pending):,} pending" if known.pending else "",
    ]
    return ", ".join([firing, *(part for part in parts if part)]) + "."


def alerts_table(alerts: Sequence[Alert], zone: tzinfo) -> str:
    """One row an alert, what it is about first, as a telephone shows no more; each linked to its cell, or to the fleet where it is about none."""
    heads = [Column(name) for name in ("Alert", "What", "Finding", "Severity", "State", "Since", "Host", "Engine")]
    rows = [alert_row(one, zone) for one in alerts[:ALERTS_MAX]]
    return table(*without_empty(heads, rows))


def alert_row(alert: Alert, zone: tzinfo) -> list[str]:
    """One alert, with its host and engine where they are known."""
    entry = alert.entry
    told = entry.annotations
    engine, host = (
        entry.about.get(name) or entry.labels.get(name, "") for name in ("service_instance_id", "host_name")
    )
    return [
        f"[{short(entry.rule)}]({address(entry.link)})" if entry.link else short(entry.rule),
        prose(in_a_cell(with_short_names(in_zone(entry.summary, zone)))),
        prose(lines_in_a_cell(with_short_names(in_zone(told.get("finding", ""), zone))), FINDING_MIN_REM),
        short(entry.labels.get("severity", "")),
        standing_words(alert),
        since(pd.Timestamp(entry.starts_at), zone, datetime.now(UTC)) if entry.starts_at else "",
        one_line(host),
        one_line(short_of(engine, host)),
    ]


def with_short_names(text: str) -> str:
    """The text with its overlong names by their two ends: unbroken, one would leave the columns beside it no room."""
    return OVERLONG.sub(r"\1…\2", text)


def in_a_cell(text: str) -> str:
    """Text that stays within a table's cell."""
    return escaped(" ".join(text.split()))


def lines_in_a_cell(text: str) -> str:
    """Lines that stay lines within a table's cell."""
    lines = (" ".join(line.removeprefix("- ").split()) for line in text.splitlines())
    return "<br>".join(escaped(line) for line in lines if line)


def in_zone(text: str, zone: tzinfo) -> str:
    """The text with its times of day, which rules and findings write in UTC, in the viewer's zone."""
    return UTC_TIME.sub(lambda found: local_time(found[0], zone), text)


def local_time(written: str, zone: tzinfo) -> str:
    """A time of day in UTC, in the viewer's zone; what only looks like one stays."""
    try:
        instant = datetime.strptime(written, "%Y-%m-%d %H:%M:%S UTC").replace(tzinfo=UTC)
    except ValueError:
        return written
    return clock(instant, zone, datetime.now(UTC))


def standing_words(alert: Alert) -> str:
    """Its state, and for how long it has been clear where it fires on all the same."""
    standing = alert.entry.standing
    clear = "" if standing.clear_s is None else f" (clear for {standing.clear_s:,.0f} s)"
    return f"{state_words(standing.state)}{clear}"


def no_changes_sentence(since: str, **wanted: str) -> str:
    """That no alert changed its state, of those that are looked at: the time range in words, and the filters by name."""
    which = ", ".join(f"{name} {escaped(value)}" for name, value in wanted.items() if value)
    of = f", of those that match {which}" if which else ""
    return f"No alert changed its state {since}{of}."


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
            prose(in_a_cell(with_short_names(", ".join(str(matcher) for matcher in one.silence.matchers)))),
            since(pd.Timestamp(one.silence.ends_at), zone, now),
            short(one.silence.created_by),
            prose(in_a_cell(with_short_names(one.silence.comment))),
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
            short(one.alertname),
            prose(in_a_cell(with_short_names(in_zone(one.summary, zone)))),
            f"{state_words(one.state)} (was {state_words(one.state_before)})",
            one_line(one.host_name),
            cell_link(one),
        ]
        for one in rows_of(changes)
    ]
    return table(*without_empty([Column(name) for name in ("When", "Alert", "What", "Became", "Host", "Cell")], rows))


def cell_link(change: Row) -> str:
    """The cell of a change, where it names one."""
    if not (change.cell and change.service_instance_id):
        return ""
    return f"[{short(change.cell)}]({cell_address(change.service_instance_id, change.cell)})"
