"""How soon an execution can be seen: from the recorder to a query's answer.

`make bench ARGS="--only visible"`. The whole way as an engine and a page have it: the recorder's interval, OTLP over
gRPC, the spool, the insert, ClickHouse's HTTP. A page adds its own refresh, an alert its interval (`bench_alerts`).
"""

import statistics
import time
from collections.abc import Iterable
from typing import Final

import clickhouse_connect
from clickhouse_connect.driver.client import Client

from engine_hooks.contract.execution import EngineResource, GraphExecution
from engine_hooks.contract.names import GraphKind
from engine_hooks.recorder.recorder import Recorder
from tests.benchmarks.bench_ingest import collector
from tests.benchmarks.report import Result, show, table_of

LIMIT_S: Final = 2.0
PATIENCE_S: Final = 60.0
LOOKS_APART_S: Final = 0.01
COUNT: Final = "SELECT count() FROM graph_executions"


def seen_after_s(client: Client, recorder: Recorder, sequence: int) -> float:
    """Record one execution, and look until the store has it."""
    before = int(client.command(COUNT))
    recorder.record(GraphExecution("decode", GraphKind.PLAIN_DECODE, sequence, 7, 8, time.time_ns(), 9))
    began = time.perf_counter()
    while int(client.command(COUNT)) == before:
        if time.perf_counter() - began > PATIENCE_S:
            raise TimeoutError(f"not seen after {PATIENCE_S:.0f} s; lost: {recorder.losses}")
        time.sleep(LOOKS_APART_S)
    return time.perf_counter() - began


def results(quick: bool) -> Iterable[Result]:
    """As `tests.benchmarks.report` asks for."""
    count = 10 if quick else 100
    with collector() as running, clickhouse_connect.get_client(dsn=running.addresses.clickhouse_url) as client:
        recorder = Recorder(EngineResource("bench:1"), grpc_endpoint=running.addresses.otlp_grpc)
        try:
            seen_after_s(client, recorder, 0)  # connects
            taken_s = [seen_after_s(client, recorder, sequence) for sequence in range(1, count + 1)]
        finally:
            recorder.stop()
    p95_s = statistics.quantiles(taken_s, n=20, method="inclusive")[18]
    for name, figure in (("median", statistics.median(taken_s)), ("p95", p95_s)):
        yield Result.of(f"visible: from record() to a query's answer, {name}", figure, LIMIT_S, "s", count, "chdb")


if __name__ == "__main__":
    show(table_of(results(quick=False), "How soon an execution can be seen"))
