"""Bytes an execution on disk, beside the generic layout of traces.

`make bench ARGS="--only storage"`. Simulated engines of several kinds, seeded, whose executions go through the
collector's own decoding; the same spans are put into `otel_traces` as the OpenTelemetry Collector's exporter would.
Both tables are merged to one part a day before they are measured; ids and indexes are included.
"""

import json
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from importlib.resources import files
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any, Final

from clickhouse_connect.driver.client import Client

from collector.acceptance import ReceivedRequest
from collector.decoding.wire import request_id_of
from collector.store.clickhouse import open_store
from collector.store.migrations import apply_schema
from collector.store.request_store import RequestStore
from engine_hooks.contract import names
from engine_hooks.contract.execution import EngineResource, GraphExecution
from engine_hooks.contract.span import GraphSpan, span_of
from engine_hooks.recorder.encoder import SCOPE_NAME
from engine_hooks.recorder.sending import requests_of
from engine_hooks.simulator.cell import run_cell
from engine_hooks.simulator.parameters import S_NS
from engine_hooks.simulator.recording import CellLabels, simulated_resource
from tests.benchmarks.report import Result, show, table_of
from tests.fixtures.alert_fleets import Kind, plan_of

LIMIT_BYTES: Final = 14.0
KINDS: Final = (Kind.CLEAN, Kind.STUMBLE, Kind.DELAYS, Kind.FEEDBACK, Kind.PREFILLS, Kind.STUCK, Kind.HOST_BOUND)
GENERIC: Final = files("collector").joinpath("otel_traces", "900_otel_traces.sql")
PARTS: Final = (
    "SELECT sum(rows), sum(bytes_on_disk) FROM system.parts"
    " WHERE active AND database = currentDatabase() AND table = {table:String}"
)
ROWS_AT_ONCE: Final = 20_000
REQUESTS_AT_ONCE: Final = 32


def engines(count: int, engine_s: int) -> Iterator[tuple[EngineResource, list[GraphExecution]]]:
    """Engines of each kind in turn."""
    for seed in range(count):
        plan = plan_of(KINDS[seed % len(KINDS)], Random(seed), engine_s)
        executions: list[GraphExecution] = []
        scenario = replace(plan.scenario, duration_ns=engine_s * S_NS)
        run_cell(scenario, plan.model, seed, on_execution=executions.append, labels=CellLabels(cell_concurrency=32))
        host = f"gpu-node-{seed:03}"
        yield simulated_resource(f"{host}:8000-1793491200", host_name=host, engine_recipe="32-lanes"), executions


def store_ours(client: Client, resource: EngineResource, executions: Iterable[GraphExecution]) -> None:
    """By the collector's own views."""
    store, requests = RequestStore(client), requests_of(resource, executions)
    while batch := [request.body for request in islice(requests, REQUESTS_AT_ONCE)]:
        store.insert([ReceivedRequest.of(request_id_of(raw), raw, time.time_ns() // 1_000_000) for raw in batch])


def store_generic(client: Client, resource: EngineResource, executions: Iterable[GraphExecution]) -> None:
    """As the exporter writes spans: every attribute as text in a map."""
    rows = (_generic_row(span_of(execution, resource)) for execution in executions)
    while batch := list(islice(rows, ROWS_AT_ONCE)):
        client.insert("otel_traces", [list(row.values()) for row in batch], column_names=list(batch[0]))


def _generic_row(span: GraphSpan) -> dict[str, Any]:
    return {
        "Timestamp": span.start_ns,
        "TraceId": span.trace_id.hex(),
        "SpanId": span.span_id.hex(),
        "SpanName": span.name,
        "SpanKind": "Internal",
        "ServiceName": span.resource.get(names.SERVICE_NAME, ""),
        "ResourceAttributes": _texts(span.resource),
        "ScopeName": SCOPE_NAME,
        "SpanAttributes": _texts(span.attributes),
        "Duration": span.end_ns - span.start_ns,
        "StatusCode": "Unset",
    }


def _texts(attributes: Mapping[str, Any]) -> dict[str, str]:
    """Strings as they are, the rest as JSON."""
    return {
        name: str(value) if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
        for name, value in attributes.items()
    }


def bytes_of(client: Client, table: str, rows: int) -> float:
    """Of each of so many rows on disk, the primary index and the skipping indexes included."""
    named = {"table": table}
    client.command("OPTIMIZE TABLE {table:Identifier} FINAL", parameters=named)
    stored, size = client.query(PARTS, parameters=named).result_rows[0]
    if stored != rows:
        raise AssertionError(f"{rows} executions were stored as {stored} rows of {table}")
    return float(size / rows)


def results(quick: bool) -> list[Result]:
    """As `tests.benchmarks.report` asks for."""
    count, engine_s = (len(KINDS), 120) if quick else (2 * len(KINDS), 600)
    with tempfile.TemporaryDirectory() as directory, open_store(Path(directory)) as client:
        apply_schema(client)
        client.command(GENERIC.read_text())
        stored = 0
        for resource, executions in engines(count, engine_s):
            store_ours(client, resource, executions)
            store_generic(client, resource, executions)
            stored += len(executions)
        ours, generic = (bytes_of(client, table, stored) for table in ("graph_executions", "otel_traces"))
    packages = ("chdb", "chdb-core")
    return [
        Result.of("storage: an execution, against the limit", ours, LIMIT_BYTES, "bytes", stored, *packages),
        Result.of("storage: an execution, against otel_traces", ours, generic, "bytes", stored, *packages),
    ]


if __name__ == "__main__":
    show(table_of(results(quick=False), "Bytes an execution"))
