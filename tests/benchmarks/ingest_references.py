"""What the collector is compared with: the same requests walked in Python, decoded by the engine alone, sent as Arrow."""

import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from clickhouse_connect.driver.client import Client
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collector.acceptance import ReceivedRequest
from collector.decoding.wire import request_id_of
from collector.store.clickhouse import open_store
from collector.store.migrations import SchemaFile, apply_schema, schema_files
from collector.store.request_store import RequestStore
from engine_hooks.contract.span import GraphSpan
from engine_hooks.contract.validation import span_refusal

_TABLES = (
    "010_graph_executions.sql",
    "012_new_executions.sql",
    "014_store_new_executions.sql",
    "020_otlp_requests.sql",
)
_PLAIN = Path(__file__).with_name("plain_executions.sql")


class Rate(NamedTuple):
    """Executions of one work, and what it took."""

    spans: int
    wall_s: float
    cpu_s: float

    @property
    def per_s(self) -> float:
        return self.spans / self.wall_s

    @property
    def per_core_s(self) -> float:
        """For each second of CPU time."""
        return self.spans / self.cpu_s


def best_of(repeats: int, spans: int, work: Callable[[], object]) -> Rate:
    """The repeat that took the least CPU time of this process: other work on the machine only ever adds."""
    rates = []
    for _ in range(repeats):
        began, used = time.perf_counter(), time.process_time()
        work()
        rates.append(Rate(spans, time.perf_counter() - began, time.process_time() - used))
    return min(rates, key=lambda rate: rate.cpu_s)


# ---- in Python


def walk(requests: Iterable[bytes]) -> int:
    """Parse and make a row of every span: all attributes of resource and span by name. Checks and stores nothing."""
    return sum(1 for _ in _rows(requests))


def walk_and_validate(requests: Iterable[bytes]) -> int:
    """The same, and every row checked by the contract's rules as Python has them. Stores nothing."""
    return sum(span_refusal(row) is None for row in _rows(requests))


def _rows(requests: Iterable[bytes]) -> Iterator[GraphSpan]:
    for raw in requests:
        for resource_spans in ExportTraceServiceRequest.FromString(raw).resource_spans:
            resource = _values(resource_spans.resource.attributes)
            for scope_spans in resource_spans.scope_spans:
                for span in scope_spans.spans:
                    yield GraphSpan(
                        span.name,
                        span.trace_id,
                        span.span_id,
                        span.start_time_unix_nano,
                        span.end_time_unix_nano,
                        _values(span.attributes),
                        resource,
                    )


def _values(attributes: Any) -> dict[str, Any]:
    return {item.key: _value(item.value) for item in attributes}


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    return [_value(item) for item in value.array_value.values] if kind == "array_value" else getattr(value, kind)


# ---- in the engine


class EngineFigures(NamedTuple):
    """By the engine in this process, one insert for each batch."""

    plain: Rate
    """Decoded and inserted, by the plainest statement."""
    decoded: Rate
    """By the collector's own views: checked, recognised and counted as well."""
    arrow: Rate
    """The same rows, handed over as Arrow."""


def engine_figures(directory: Path, batches: list[list[bytes]], repeats: int) -> EngineFigures:
    """Each of the three on tables of its own. The engine may be opened once a process."""
    with open_store(directory) as client:
        plain = _inserted(client, _plain_schema(), batches, repeats)
        table = client.query_arrow("SELECT * FROM graph_executions")
        decoded = _inserted(client, schema_files(), batches, repeats)
        arrow = best_of(repeats, table.num_rows, _arrow_insert(client, table, len(batches)))
    return EngineFigures(plain, decoded, arrow)


def _spans(raw: bytes) -> int:
    return sum(
        len(scope.spans)
        for resource in ExportTraceServiceRequest.FromString(raw).resource_spans
        for scope in resource.scope_spans
    )


def _plain_schema() -> list[SchemaFile]:
    tables = [change for change in schema_files() if change.name in _TABLES]
    return [*tables, SchemaFile(_PLAIN.name, _PLAIN.read_text())]


def _inserted(client: Client, schema: list[SchemaFile], batches: list[list[bytes]], repeats: int) -> Rate:
    """The best of a few rounds, each into an empty database; the last one stays, and stays the client's."""

    def insert() -> None:
        store = RequestStore(client)
        for batch in batches:
            store.insert([ReceivedRequest.of(request_id_of(raw), raw, time.time_ns() // 1_000_000) for raw in batch])

    rates = []
    for _ in range(repeats):
        _empty_database(client, schema)
        rates.append(best_of(1, sum(_spans(raw) for batch in batches for raw in batch), insert))
    return min(rates, key=lambda rate: rate.cpu_s)


def _empty_database(client: Client, schema: list[SchemaFile]) -> None:
    client.database = "default"
    client.command("DROP DATABASE IF EXISTS measured SYNC")
    client.command("CREATE DATABASE measured")
    client.database = "measured"
    apply_schema(client, schema)


def _arrow_insert(client: Client, table: Any, parts: int) -> Callable[[], None]:
    """In as many inserts as the others take."""
    _empty_database(client, [change for change in schema_files() if change.name == _TABLES[0]])
    rows = -(-table.num_rows // parts)

    def insert() -> None:
        client.command("TRUNCATE TABLE graph_executions")
        for start in range(0, table.num_rows, rows):
            client.insert_arrow("graph_executions", table.slice(start, rows))

    return insert
