"""Where the rows come from that rules look at: the catalogue, and the collector's own state."""

import json
import os
import ssl
import time
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Protocol, TypeVar

from queries.alerts.rule import Rule
from queries.catalogue import find
from queries.client import connected, credentials_in, one_line
from queries.errors import RefusedError, UnreachableError
from queries.rows import CA_VARIABLE, other_store, store_id_at
from queries.runner import Rows, asked

ROWS_MAX: Final = 10_000
"""Series of one rule. Queries that take a `limit` are asked for no more."""
BEHIND: Final = "behind_s"
"""A parameter for how far the store is behind what the collector has taken, in s."""
JUDGED: Final = "judged"
"""A column of live queries: whether what a row rests on has been judged."""
SUSPECTS_BEFORE: Final = timedelta(minutes=10)
"""What was so long before the time asked for may still hold at its beginning."""
REPLACED_SILENT_S: Final = 30.0
"""An engine that paused while another began on its GPUs is not replaced: before so long, in s, nobody can tell."""
GENTLE: Final[Mapping[str, Any]] = {"max_threads": 1}
"""ClickHouse's settings for work that nobody waits for."""
REST_S_MAX: Final = 10.0
Spans = tuple[tuple[datetime, datetime], ...]
"""From when to when, UTC."""
_COLLECTOR_TIMEOUT_S: Final = 5
Told = TypeVar("Told")


class PastSource(Protocol):
    """Answers what a rule asks of an instant."""

    def rows(self, rule: Rule, at: datetime, *, is_now: bool) -> Rows:
        """The rows of a rule's query as of an instant; `is_now` where that is the present.

        Raises:
            QueriesError: they cannot be had.
        """


class SuspectingSource(PastSource, Protocol):
    """Knows as well where it is worth looking."""

    def suspects(self, rule: Rule, since: datetime, until: datetime) -> Spans | None:
        """When the condition of a rule may have begun to hold, by what its `suspects` asks; None: at any time.

        Raises:
            QueriesError: it cannot be told.
        """


class Source(PastSource, Protocol):
    """The same of the present. Called from several threads at a time."""

    def store_time(self) -> datetime:
        """Now, on the clock by which arrivals are stamped.

        Raises:
            QueriesError: it cannot be told.
        """

    def replaced(self, at: datetime) -> Mapping[str, str]:
        """Engines that are silent and were replaced by then, and each time by which other one.

        Raises:
            QueriesError: it cannot be told.
        """


class StoredSource:
    """ClickHouse and a collector, by URL.

    Args:
        settings: ClickHouse's, for each query.
    """

    def __init__(self, clickhouse_url: str, collector_url: str, settings: Mapping[str, Any] | None = None) -> None:
        self._clickhouse_url = clickhouse_url
        self._collector_url = collector_url
        self._settings = dict(settings or {})
        self._store_id = ""

    def store_time(self) -> datetime:
        moment: datetime = self._ran("store_time", {})[0]["store_time"]
        return moment

    def replaced(self, at: datetime) -> Mapping[str, str]:
        rows = self._ran("silent_engines", {"at": at, "limit": ROWS_MAX})
        return {
            row["service_instance_id"]: row["replaced_by"]
            for row in rows
            if row["is_replaced"] and row["silent_s"] > REPLACED_SILENT_S
        }

    def rows(self, rule: Rule, at: datetime, *, is_now: bool) -> Rows:
        if rule.watches == "collector":
            return [self._collector_row()]
        if is_now and rule.live:
            told = self._asked(rule.model_copy(update={"query": rule.live}), at, is_now=True)
            # Where nobody judges, or not fast enough: slower, not wrong.
            if all(row[JUDGED] for row in told):
                return told
        return self._asked(rule, at, is_now=is_now)

    def _asked(self, rule: Rule, at: datetime, *, is_now: bool) -> Rows:
        values = values_of(rule, at, is_now=is_now)
        if is_now and BEHIND in names_of(rule.query):
            # Where the collector does not answer, nobody can tell whose silence it is.
            values = {BEHIND: self._collector_row()["oldest_waiting_s"]} | values
        return self._ran(rule.query or "", values)

    def _collector_row(self) -> dict[str, Any]:
        def read(state: Mapping[str, Any]) -> dict[str, Any]:
            self._check_store(str(state.get("store_id", "")))
            return row_of(state)

        return collector_state(self._collector_url, self._clickhouse_url, read)

    def _check_store(self, told: str) -> None:
        """Another store's collector knows nothing of what waits for this one. While either does not say which it is, nothing
        is compared: of a store that is away, a collector tells most."""
        if told in ("", self._store_id):
            return
        with suppress(UnreachableError, RefusedError):
            self._store_id = store_id_at(self._clickhouse_url)
        if self._store_id not in ("", told):
            raise other_store(self._collector_url, self._clickhouse_url)

    def suspects(self, rule: Rule, since: datetime, until: datetime) -> Spans | None:
        values = {name: value for name, value in rule.parameters.items() if name in names_of(rule.suspects)}
        if not rule.suspects:
            return None
        rows = self._ran(rule.suspects, {**values, "from": since - SUSPECTS_BEFORE, "to": until})
        return tuple((_utc(row["since"]), _utc(row["until"])) for row in rows)

    def _ran(self, name: str, values: Mapping[str, object]) -> Rows:
        sql, parameters = asked(name, values)
        with one_line(self._clickhouse_url):
            answer = connected(self._clickhouse_url).query(sql, parameters=parameters, settings=self._settings)
            return list(answer.named_results())


class GentleSource:
    """A source for work that nobody waits for: after each answer it rests as long as that took, so that those who wait
    have at least half of the store. `priority` would be ClickHouse's own way, but counts only among queries that set it.

    Args:
        elapsed_s: A monotonic clock.
        rest: Sleeps, in s.
    """

    def __init__(
        self,
        source: SuspectingSource,
        elapsed_s: Callable[[], float] = time.monotonic,
        rest: Callable[[float], object] = time.sleep,
    ) -> None:
        self._source = source
        self._elapsed_s = elapsed_s
        self._rest = rest

    def rows(self, rule: Rule, at: datetime, *, is_now: bool) -> Rows:
        began = self._elapsed_s()
        rows = self._source.rows(rule, at, is_now=is_now)
        self._rest(min(self._elapsed_s() - began, REST_S_MAX))
        return rows

    def suspects(self, rule: Rule, since: datetime, until: datetime) -> Spans | None:
        return self._source.suspects(rule, since, until)


def _utc(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def names_of(query: str | None) -> frozenset[str]:
    """The parameters of a query; of none, none."""
    return frozenset(parameter.name for parameter in find(query).parameters) if query else frozenset()


def values_of(rule: Rule, at: datetime, *, is_now: bool) -> dict[str, object]:
    """The parameters of a rule's query.

    Of the present, `to` is left open: a host whose clock is ahead is not to vanish for it.
    """
    names = names_of(rule.query)
    given: dict[str, object] = {
        "at": at,
        "from": at - timedelta(seconds=rule.window),
        "to": None if is_now else at,
        "limit": ROWS_MAX,
    }
    return {name: value for name, value in given.items() if name in names} | rule.parameters


def collector_state(collector_url: str, reader_url: str, read: Callable[[Mapping[str, Any]], Told]) -> Told:
    """What is read of that which a collector says of itself.

    Args:
        reader_url: A URL that bears a reader's user and password, where they are needed.
        read: Takes /state; may raise KeyError, TypeError or ValueError where it is no collector's.

    Raises:
        UnreachableError: it does not tell.
    """
    url = f"{collector_url.rstrip('/')}/state"
    request = urllib.request.Request(url, headers=credentials_in(reader_url))  # noqa: S310 -- a collector's URL
    try:
        context = ssl.create_default_context(cafile=os.environ.get(CA_VARIABLE) or None)
        with urllib.request.urlopen(request, timeout=_COLLECTOR_TIMEOUT_S, context=context) as answer:  # noqa: S310
            return read(json.load(answer))
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
        **_failing_look(state.get("looks", {})),
    }


def _failing_look(looks: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Of what a collector sees to now and again, that which has failed for longest."""
    failing = {name: look for name, look in looks.items() if look["failed_in_row"]}
    if not failing:
        return {"look_failing_s": 0.0, "look": "", "look_failure": "", "look_error": ""}
    name, look = max(failing.items(), key=lambda one: float(one[1]["failing_s"]))
    return {
        "look_failing_s": float(look["failing_s"]),
        "look": name,
        "look_failure": look["failure"],
        "look_error": look["error"],
    }
