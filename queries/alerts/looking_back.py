"""One rule at one instant: what it looks at, and where its alerts stand."""

from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from queries.alerts.book import Entry, Identity, look
from queries.alerts.rule import Rule
from queries.alerts.sources import PastSource
from queries.errors import CallError
from queries.parameters import instant
from queries.runner import Rows

LOOKS_MAX: Final = 100


class LookedAt(NamedTuple):
    """What one instant shows."""

    rows: Rows
    entries: tuple[Entry, ...]
    """Alerts that are not inactive."""


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
