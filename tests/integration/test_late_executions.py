"""Late and odd clocks: executions keep their own times, cells go by those, and the store by their arrival."""

import time
from contextlib import closing
from pathlib import Path

from clickhouse_connect.driver.client import Client

from collector.acceptance import StoreUnavailableError
from collector.spool.database import spool_file
from collector.spool.spool import Spool
from collector.store.request_store import RequestStore
from collector.telemetry.metrics import CollectorMetrics
from collector.writer import Writer
from tests.fixtures.contract_cases import STARTED_AT, SpanCase, request_of
from tests.fixtures.doors import PATIENT, PROTOBUF, open_doors
from tests.fixtures.senders import eventually

DAY_NS = 86_400_000_000_000


def execution(sequence: int, started_at: int) -> SpanCase:
    times = {"start_time_unix_nano": started_at, "end_time_unix_nano": started_at + 31_000_000}
    span = times | {"span_id": (sequence + 1).to_bytes(8, "big")}
    return SpanCase(str(sequence), attributes={"graph.sequence": sequence, "cell.id": None}, span=span)


def test_a_request_that_spans_two_hundred_days_is_stored(clickhouse: Client) -> None:
    """ClickHouse refuses an insert into more than 100 partitions; executions are partitioned by their arrival."""
    days = [execution(day, STARTED_AT - day * DAY_NS) for day in range(200)]
    with open_doors(clickhouse) as doors:
        answer = doors.post(request_of(days), **PROTOBUF)
    assert (answer.status_code, answer.content) == (200, b"")
    rows = clickhouse.query(
        "SELECT count(), uniqExact(toDate(started_at)), uniqExact(cell), uniqExact(_partition_id) FROM graph_executions"
    ).result_rows
    assert rows == [(200, 200, 200, 1)]


def test_executions_a_day_late_land_in_their_own_cells(clickhouse: Client) -> None:
    now = time.time_ns()
    late = [execution(hours, now - hours * 3_600_000_000_000) for hours in range(25)]
    with open_doors(clickhouse) as doors:
        for one in late:
            assert doors.post(request_of([one]), **PROTOBUF).status_code == 200
    cells = clickhouse.query("SELECT cell FROM graph_executions ORDER BY graph_sequence").result_columns[0]
    windows = [(now - hours * 3_600_000_000_000) // 30_000_000_000 * 30 for hours in range(25)]
    assert list(cells) == [str(window) for window in windows]
    rollup = clickhouse.query("SELECT DISTINCT cell FROM cell_graphs ORDER BY cell").result_columns[0]
    assert list(rollup) == sorted(str(window) for window in windows)


def test_after_an_outage_of_a_day_the_arrival_is_that_of_the_request(clickhouse: Client, tmp_path: Path) -> None:
    def away() -> RequestStore:
        raise StoreUnavailableError("ClickHouse is away")

    received_ns = time.time_ns() // 1_000_000 * 1_000_000 - DAY_NS
    with closing(Spool(spool_file(tmp_path))) as spool:
        limits = PATIENT._replace(drain=PATIENT.drain._replace(answer_within_s=0.0), stop_s=0.1)
        writer = Writer(spool, away, CollectorMetrics(), limits, lambda: received_ns)
        writer.start()
        writer.accept(request_of([execution(1, received_ns - 31_000_000)]), "http").result(10)
        writer.stop()
        assert spool.ledger()["http"].pending == 1
        later = Writer(spool, lambda: RequestStore(clickhouse), CollectorMetrics(), PATIENT)
        later.start()
        try:  # A stop alone would leave the request in the spool where an insert takes longer than its 5 s.
            eventually(lambda: spool.ledger()["http"].pending == 0)
        finally:
            later.stop()
        assert spool.ledger()["http"].stored == 1
    (arrival,) = clickhouse.query("SELECT toUnixTimestamp64Milli(received_at) FROM graph_executions").result_columns
    assert list(arrival) == [received_ns // 1_000_000]
