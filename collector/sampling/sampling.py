"""Examining cells and dropping the executions of those that are healthy: `*.sql` here have how, docs/sampling.md the rules.

Everything is decided in the store, from what is stored, and written to `cell_samples` before and after it is done: a
process that ends half-way goes on where it was, and two at once do the same twice.
"""

import math
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from typing import Any, Final, NamedTuple

from clickhouse_connect.driver.client import Client

from collector.cluster.form import LOCAL
from collector.sampling.rules import SamplingRules

LOOK_BACK_S: Final = 2 * 86_400
"""Cells that could have gone for so long, and have not, are left as they are."""
STRETCHES_AT_ONCE: Final = 6
CELLS_AT_ONCE: Final = 2_000
"""Dropped by one statement."""
CELLS_OF_A_PART: Final = 100_000
"""Looked at by one statement, on average: it takes memory with each."""
EXECUTIONS_OF_A_PART: Final = 5_000_000
"""The same of a statement that reads executions."""
_SETTINGS: Final[dict[str, Any]] = {
    "max_threads": 1,
    "max_memory_usage": 2 * 1024**3,
    "async_insert": 0,
    "distributed_product_mode": "global",
    "lightweight_deletes_sync": 2,
    "mutations_sync": 2,
}
_CELLS: Final = """
SELECT uniq(service_instance_id, cell) FROM cell_windows
WHERE received_on >= toDate(subtractSeconds(now('UTC'), {look_back_s:UInt32}))
"""
_EXECUTIONS: Final = """
SELECT sum(executions) FROM cell_windows
WHERE window_started_at >= subtractSeconds({from:DateTime64(9, 'UTC')}, 150) AND window_started_at <= {to:DateTime64(9, 'UTC')}
"""
_DROP: Final = """
DELETE FROM {place}
WHERE service_instance_id IN {engines:Array(String)}
    AND toUnixTimestamp64Milli(received_at) <= transform(
        concat(service_instance_id, '\n', if(cell_id != '', toString(cell_id), toString(intDiv(toUnixTimestamp64Nano(started_at), 30000000000) * 30))),
        {cells:Array(String)}, {received_ms:Array(Int64)}, toInt64(-1)
    )
"""
_DROPPED: Final = """
INSERT INTO cell_samples (received_on, service_instance_id, cell, first_started_at, last_started_at, executions, reason, examined_at, dropped_at)
SELECT received_on, service_instance_id, cell, min(c.first_started_at), max(c.last_started_at), max(c.executions), '', max(c.examined_at), now64(3, 'UTC')
FROM cell_samples AS c
WHERE (service_instance_id, cell) IN {cells:Array(Tuple(String, String))}
GROUP BY received_on, service_instance_id, cell
"""
_MASKED: Final = """
SELECT DISTINCT partition_id FROM system.parts
WHERE active AND database = currentDatabase() AND table = {table:String} AND has_lightweight_delete
    AND partition_id < formatDateTime(subtractSeconds(now('UTC'), {rest_s:UInt32}), '%Y%m%d')
"""
_TOLD: Final = """
SELECT count(), countIf(dropped), sumIf(executions, dropped)
FROM (
    SELECT service_instance_id, cell, received_on, max(c.executions) AS executions, max(dropped_at) > toDateTime64(0, 3, 'UTC') AS dropped
    FROM cell_samples AS c GROUP BY service_instance_id, cell, received_on
)
"""


class Sampled(NamedTuple):
    """What sampling did to a store, as far back as it is remembered there."""

    examined_cells: int = 0
    """A cell whose executions arrived on two days counts twice; so in the next."""
    dropped_cells: int = 0
    dropped_executions: int = 0


class _Healthy(NamedTuple):
    """A cell that is to be dropped."""

    engine: str
    cell: str
    received_ms: int
    """When the last execution was received that it was found healthy by, Unix time by the collector's clock."""


class Sampling:
    """Of one store. A client runs one query at a time; every method raises `ClickHouseError` as it comes.

    Args:
        client: On the store's database.
        rules: What may be dropped.
        cluster: The cluster that the database is on; '' is none.
        is_ending: Whether no further statement is wanted: what was not done is done by whoever comes next.
    """

    def __init__(
        self,
        client: Client,
        rules: SamplingRules,
        cluster: str = "",
        is_ending: Callable[[], bool] = lambda: False,
    ) -> None:
        self._client = client
        self._is_ending = is_ending
        self._rules = rules
        self._place = f"graph_executions{LOCAL} ON CLUSTER '{cluster}'" if cluster else "graph_executions"
        self._table = f"graph_executions{LOCAL}" if cluster else "graph_executions"
        self._look_back_s = LOOK_BACK_S + rules.settled_s + rules.context_s
        self._settings = {name: value for name, value in _SETTINGS.items() if name in client.server_settings}

    def run(self) -> Sampled:
        """Examine what has settled, drop what is healthy, and say what came of it so far."""
        self.examine()
        while not self._is_ending() and self.drop() >= CELLS_AT_ONCE:
            pass
        self.tidy()
        return self.told()

    def examine(self) -> int:
        """Examine the cells of so many stretches of ten minutes, the oldest, and return how many stretches were found."""
        values = {"settled_s": self._rules.settled_s, "stretches": STRETCHES_AT_ONCE}
        found: dict[int, tuple[datetime, datetime]] = {}
        for stretch, first, last in self._of_all_parts("unexamined_cells", values):
            earliest, latest = found.get(stretch, (first, last))
            found[stretch] = min(first, earliest), max(last, latest)
        # Each part told its own oldest, so all of those that are the oldest of all.
        oldest = sorted(found.items())[:STRETCHES_AT_ONCE]
        for _, (first, last) in oldest:
            if self._is_ending():
                break
            self.examine_between(first - _TICK, last + _TICK)
        return len(oldest)

    def examine_between(self, first: datetime, last: datetime) -> None:
        """Examine the cells that lie between, by the engines' clocks, and whose verdict is final and old enough."""
        rules = self._rules
        values = {
            "from": _text(first),
            "to": _text(last),
            "settled_s": rules.settled_s,
            "keeps_marked": rules.keeps_marked,
            "share": round(rules.share * 65_536),
        }
        for part in self._parts(_EXECUTIONS, values, EXECUTIONS_OF_A_PART):
            self._command(_statement("examine_cells"), {**values, **part})

    def drop(self) -> int:
        """Drop the executions of healthy cells, the oldest first, and return of how many: of each part `CELLS_AT_ONCE` at most."""
        values = {"context_s": self._rules.context_s, "cells_max": CELLS_AT_ONCE}
        # Of all parts together: a deletion costs by the executions that it passes, not by those that it hides.
        found = sorted(self._of_all_parts("cells_to_drop", values))
        cells = [_Healthy(str(engine), str(cell), int(received_ms)) for _, engine, cell, received_ms in found]
        for first in range(0, len(cells), CELLS_AT_ONCE):
            if self._is_ending():
                return first
            self._drop(cells[first : first + CELLS_AT_ONCE])
        return len(cells)

    def _drop(self, cells: list[_Healthy]) -> None:
        """What arrived since it was asked which cells are healthy stays, by what each was known by then."""
        values = {
            "engines": sorted({one.engine for one in cells}),
            "cells": [f"{one.engine}\n{one.cell}" for one in cells],
            "received_ms": [one.received_ms for one in cells],
        }
        self._command(_DROP.replace("{place}", self._place), values)
        self._command(_DROPPED, {"cells": [(one.engine, one.cell) for one in cells]})

    def tidy(self) -> int:
        """Give back the disk of days that are past: until then, what is dropped is only hidden, or gone by a merge."""
        rest_s = self._rules.settled_s + self._rules.context_s + 3600
        partitions = [name for (name,) in self._query(_MASKED, {"table": self._table, "rest_s": rest_s})]
        for name in partitions:
            if self._is_ending():
                break
            self._command(f"ALTER TABLE {self._place} APPLY DELETED MASK IN PARTITION ID '{name}'", {})
        return len(partitions)

    def told(self) -> Sampled:
        """What was done so far."""
        # Millions of cells, in the order in which they lie: else all of them would be in memory at once.
        settings = {**self._query_settings(), "optimize_aggregation_in_order": 1}
        ((examined, cells, executions),) = self._client.query(_TOLD, settings=settings).result_rows
        return Sampled(int(examined), int(cells), int(executions))

    def _of_all_parts(self, name: str, values: dict[str, Any]) -> Iterator[Any]:
        """Rows of a statement that is asked of one part of the engines after the other: some tell of the same stretch."""
        values = {**values, "look_back_s": self._look_back_s}
        for part in self._parts(_CELLS, values, CELLS_OF_A_PART):
            yield from self._query(_statement(name), {**values, **part})

    def _parts(self, count: str, values: dict[str, Any], at_once: int) -> Iterator[dict[str, int]]:
        """What names each part of the engines, of which no cell speaks for another engine's, until nothing further is wanted."""
        ((counted,),) = self._query(count, values)
        parts = max(1, math.ceil(counted / at_once))
        for part in range(parts):
            if self._is_ending():
                break
            yield {"parts": parts, "part": part}

    def _query(self, sql: str, values: dict[str, Any]) -> list[Any]:
        return list(self._client.query(sql, parameters=values, settings=self._query_settings()).result_rows)

    def _command(self, sql: str, values: dict[str, Any]) -> None:
        self._client.command(sql, parameters=values, settings=self._settings)

    def _query_settings(self) -> dict[str, Any]:
        return {name: value for name, value in self._settings.items() if not name.endswith("_sync")}


_TICK: Final = timedelta(microseconds=1)


def _statement(name: str) -> str:
    return files("collector.sampling").joinpath(f"{name}.sql").read_text("utf-8")


def _text(moment: datetime) -> str:
    return (
        moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")
        if moment.tzinfo
        else moment.strftime("%Y-%m-%d %H:%M:%S.%f")
    )
