"""One rule at one instant: what it looks at, and where its alerts stand."""

from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from queries.alerts.book import Entry, Identity, look
from queries.alerts.conditions import judge
from queries.alerts.rule import Rule
from queries.alerts.sources import PastSource
from queries.alerts.states import Seen
from queries.errors import CallError
from queries.parameters import instant
from queries.runner import Rows

LOOKS_MAX: Final = 100
OUR_CLOCK_BEHIND_MAX: Final = timedelta(minutes=1)
"""So far ours may be behind another machine's: what is beyond it is the future."""


class LookedAt(NamedTuple):
    """What one instant shows."""

    rows: Rows
    entries: tuple[Entry, ...]
    """Alerts that are not inactive."""


def unknown(rule: Rule, rows: Rows) -> str:
    """Why nobody can tell from the rows whether anything is wrong; '' where somebody can."""
    if not rows:
        quiet = "its query has no rows then, so nothing reported, or not for long enough"
        return quiet if rule.absent == "no_data" else ""
    if all(judge(rule.when, row) == Seen.MISSING for row in rows):
        return "none of its rows has the values that the rule asks for"
    return ""


def as_of(rule: Rule, source: PastSource, at: datetime, interval_s: float, *, is_now: bool) -> LookedAt:
    """A rule's rows at an instant, and its alerts, after as many looks up to it as its `for` takes.

    Raises:
        QueriesError: a query failed.
    """
    every_s = max(interval_s, rule.every)
    looks = 1 if rule.watches else min(LOOKS_MAX, int(rule.for_ / every_s) + 2)
    entries: dict[Identity, Entry] = {}
    rows: Rows = []
    for n in range(looks):
        moment = at - timedelta(seconds=(looks - 1 - n) * every_s)
        rows = source.rows(rule, moment, is_now=is_now and n == looks - 1)
        entries = look(rule, entries, rows, elapsed_s=every_s, now=moment).entries
    return LookedAt(rows, tuple(entries.values()))


def instant_of(text: str) -> datetime:
    """An instant as the command line has it.

    Raises:
        CallError: it is none.
    """
    try:
        return datetime.fromisoformat(instant(text)[:26]).replace(tzinfo=UTC)
    except ValueError as wrong:
        raise CallError(f"{text!r} is no instant: {wrong}") from wrong


def past_instant_of(option: str, text: str) -> datetime:
    """The same of an option, of which something may be known.

    Raises:
        CallError: it is none, or lies in the future.
    """
    at = instant_of(text)
    if at > datetime.now(UTC) + OUR_CLOCK_BEHIND_MAX:
        raise CallError(
            f"{option} {text} lies in the future, of which nothing is known: name an instant up to now (UTC)"
        )
    return at
