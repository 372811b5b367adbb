"""Where the rows come from that rules look at: the catalogue, and the collector's own state."""

import base64
import json
import os
import ssl
import urllib.request
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final, Protocol
from urllib.parse import unquote, urlsplit

from queries.alerts.rule import Rule
from queries.catalogue import find
from queries.errors import UnreachableError
from queries.rows import CA_VARIABLE
from queries.runner import Rows, run

ROWS_MAX: Final = 10_000
"""Series of one rule. Queries that take a `limit` are asked for no more."""
BEHIND: Final = "behind_s"
"""A parameter for how far the store is behind what the collector has taken, in s."""
JUDGED: Final = "judged"
"""A column of live queries: whether what a row rests on has been judged."""
_COLLECTOR_TIMEOUT_S: Final = 5


class Source(Protocol):
    """Answers what a rule asks. Called from several threads at a time."""

    def store_time(self) -> datetime:
        """Now, on the clock by which arrivals are stamped.

        Raises:
            QueriesError: it cannot be told.
        """

    def rows(self, rule: Rule, at: datetime, *, is_now: bool) -> Rows:
        """The rows of a rule's query as of an instant; `is_now` where that is the present.

        Raises:
            QueriesError: they cannot be had.
        """


class StoredSource:
    """ClickHouse and a collector, by URL."""

    def __init__(self, clickhouse_url: str, collector_url: str) -> None:
        self._clickhouse_url = clickhouse_url
        self._collector_url = collector_url

    def store_time(self) -> datetime:
        moment: datetime = run("store_time", self._clickhouse_url, "rows")[0]["store_time"]
        return moment

    def rows(self, rule: Rule, at: datetime, *, is_now: bool) -> Rows:
        if rule.watches == "collector":
            return [collector_row(self._collector_url, self._clickhouse_url)]
        if is_now and rule.live:
            told = self._asked(rule.model_copy(update={"query": rule.live}), at, is_now=True)
            # Where nobody judges, or not fast enough: slower, not wrong.
            if all(row[JUDGED] for row in told):
                return told
        return self._asked(rule, at, is_now=is_now)

    def _asked(self, rule: Rule, at: datetime, *, is_now: bool) -> Rows:
        values = values_of(rule, at, is_now=is_now)
        if is_now and BEHIND in names_of(rule):
            # Where the collector does not answer, nobody can tell whose silence it is.
            values = {BEHIND: collector_row(self._collector_url, self._clickhouse_url)["oldest_waiting_s"]} | values
        return run(rule.query or "", self._clickhouse_url, "rows", **values)


def names_of(rule: Rule) -> frozenset[str]:
    """The parameters of a rule's query."""
    return frozenset(parameter.name for parameter in find(rule.query or "").parameters)


def values_of(rule: Rule, at: datetime, *, is_now: bool) -> dict[str, object]:
    """The parameters of a rule's query.

    Of the present, `to` is left open: a host whose clock is ahead is not to vanish for it.
    """
    names = names_of(rule)
    given: dict[str, object] = {
        "at": at,
        "from": at - timedelta(seconds=rule.window),
        "to": None if is_now else at,
        "limit": ROWS_MAX,
    }
    return {name: value for name, value in given.items() if name in names} | rule.parameters


def collector_row(collector_url: str, clickhouse_url: str) -> dict[str, Any]:
    """What a collector says of itself, as one row.

    Raises:
        UnreachableError: it does not.
    """
    url = f"{collector_url.rstrip('/')}/state"
    request = urllib.request.Request(url, headers=_credentials(clickhouse_url))  # noqa: S310 -- a collector's URL
    try:
        context = ssl.create_default_context(cafile=os.environ.get(CA_VARIABLE) or None)
        with urllib.request.urlopen(request, timeout=_COLLECTOR_TIMEOUT_S, context=context) as answer:  # noqa: S310
            return row_of(json.load(answer))
    except (OSError, ValueError, KeyError, TypeError) as wrong:
        raise UnreachableError(
            f"no collector tells its state at {url} ({wrong}): start one with `tachograph collect`"
        ) from wrong


def row_of(state: Mapping[str, Any]) -> dict[str, Any]:
    """A collector's state as a row."""
    spool, disk, store = state["spool"], state["disk"], state.get("store") or {}
    oldest = spool["oldest_unix_ms"]
    return {
        "pending_requests": spool["pending_requests"],
        "pending_bytes": spool["pending_bytes"],
        "oldest_waiting_s": 0.0 if oldest is None else max(0.0, (state["now_unix_ms"] - oldest) / 1e3),
        "set_aside_requests": spool["set_aside_requests"],
        "set_aside_bytes": spool["set_aside_bytes"],
        "spool_fraction": spool["pending_bytes"] / spool["bytes_max"] if spool["bytes_max"] else 0.0,
        "disk_free_bytes": disk["free_bytes"],
        "store_bytes": store.get("bytes", 0),
        "store_fraction": store["bytes"] / store["bytes_max"] if store.get("bytes_max") else 0.0,
        "store_dropped_rows": store.get("dropped_rows", 0),
    }


def _credentials(clickhouse_url: str) -> dict[str, str]:
    """A reader's: /state is behind the password of the SQL endpoint, which the URL bears where there is one."""
    place = urlsplit(clickhouse_url)
    if not place.password:
        return {}
    pair = f"{unquote(place.username or '')}:{unquote(place.password)}"
    return {"Authorization": "Basic " + base64.b64encode(pair.encode()).decode()}
