"""What the capacity calculator reckons with, measured: `python -m tests.benchmarks.bench_capacity`.

Simulated engines of several kinds, seeded, 32 lanes each. CPU time is that of the whole process, its engine's merges
included; bytes are those on disk after merging. The figures go by hand, with date and machine, into
`collector/capacity/figures.json`.
"""

import gzip
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from clickhouse_connect.driver.client import Client

from collector.acceptance import ReceivedRequest
from collector.decoding.wire import request_id_of
from collector.judging.judging import judge_cells
from collector.store.clickhouse import open_store
from collector.store.migrations import apply_schema, schema_files
from collector.store.request_store import RequestStore
from engine_hooks.contract.span import span_of
from engine_hooks.recorder.sending import requests_of
from engine_hooks.simulator.recording import simulated_resource
from tests.benchmarks.bench_storage import _generic_row, engines

COUNT: Final = 14
ENGINE_S: Final = 300
ROLLUPS: Final = ("cell_graphs", "cell_windows")
"""Those kept for 180 days; `engine_seconds` is kept for 30."""
SIZE: Final = "SELECT sum(bytes_on_disk), sum(rows) FROM system.parts WHERE active AND database = currentDatabase() AND table = {table:String}"


def cpu_s(work: Callable[[], object]) -> float:
    """CPU time of this process for it, all threads."""
    began = time.process_time()
    work()
    return time.process_time() - began


def bytes_of(client: Client, table: str) -> int:
    client.command(f"OPTIMIZE TABLE {table} FINAL")
    return int(client.query(SIZE, parameters={"table": table}).first_row[0])


def measured() -> dict[str, float]:
    """Every figure, in the units of its name."""
    found: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as directory, open_store(Path(directory)) as client:
        apply_schema(client, schema_files(otel_traces=True))
        made = [(resource, executions) for resource, executions in engines(COUNT, ENGINE_S)]
        count = sum(len(executions) for _, executions in made)
        found["executions"] = count
        found["executions_per_s_of_an_engine"] = count / COUNT / ENGINE_S
        bodies = [request.body for resource, executions in made for request in requests_of(resource, executions)]
        found["otlp_bytes_per_execution"] = sum(map(len, bodies)) / count
        found["otlp_gzip_bytes_per_execution"] = sum(len(gzip.compress(body, 6)) for body in bodies) / count
        store, now_ms = RequestStore(client), time.time_ns() // 1_000_000
        received = [ReceivedRequest.of(request_id_of(body), body, now_ms) for body in bodies]

        def insert() -> None:
            for n in range(0, len(received), 40):
                store.insert(received[n : n + 40])

        found["view_cpu_us_per_execution"] = 1e6 * cpu_s(insert) / count
        cells = int(client.query("SELECT uniqExact(service_instance_id, cell) FROM cell_windows").first_row[0])
        found["judging_cpu_ms_per_cell"] = 1e3 * cpu_s(lambda: judge_cells(client, 86_400, 100)) / cells
        found["bytes_per_execution"] = bytes_of(client, "graph_executions") / count
        found["rollup_bytes_per_cell"] = sum(bytes_of(client, table) for table in ROLLUPS) / cells
        found["second_bytes_per_cell"] = bytes_of(client, "engine_seconds") / cells
        rows = [
            list(_generic_row(span_of(execution, simulated_resource(f"other-{n}", host_name=f"other-{n}"))).values())
            for n, (_, executions) in enumerate(made)
            for execution in executions
        ]
        names = list(_generic_row(span_of(made[0][1][0], made[0][0])))

        def export() -> None:
            for n in range(0, len(rows), 20_000):
                client.insert("otel_traces", rows[n : n + 20_000], column_names=names)

        found["otel_traces_cpu_us_per_execution"] = 1e6 * cpu_s(export) / count
        found["otel_traces_bytes_per_execution"] = bytes_of(client, "otel_traces") / count
    return found


if __name__ == "__main__":
    for name, value in measured().items():
        print(f"{name:40} {value:12,.2f}")  # noqa: T201
