"""The door for derived rows: what it stores, what it refuses and how, and the client that speaks to it."""

import gzip
import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from clickhouse_connect.driver.client import Client
from starlette.applications import Starlette

from collector.derived_rows import DERIVED_TABLES, ROWS_MAX, DerivedRows
from collector.http_server import HttpServer
from collector.ports import bind, port_of
from collector.receivers.answers import REQUEST_BYTES_MAX
from collector.receivers.derived_rows import RowsReceiver
from collector.store.clickhouse import StoreError, connect, open_store
from collector.store.client import StoreClient
from collector.store.migrations import schema_files
from collector.telemetry.metrics import CollectorMetrics
from queries.alerts.history import storing_at
from queries.errors import CallError, OtherStoreError, RefusedError, UnreachableError
from queries.rows import BATCH_ROWS, store_rows
from tests.fixtures.databases import SERVER_URL, read_only_url

REPLAY: dict[str, Any] = {
    "replay_id": "r1",
    "made_at": "2026-11-29T10:00:00.5Z",
    "form": "exact",
    "service_instance_id": "engine-1",
    "cell": "cell-7",
    "cost_model": "drained_share",
    "parameters": {"window": "16"},
    "results": {"plain_fraction": 0.25},
}


class Door:
    """A door over the tests' store."""

    def __init__(self, rows: DerivedRows) -> None:
        self.metrics = CollectorMetrics()
        listening = bind("127.0.0.1", 0, "no setting")
        self.url = f"http://127.0.0.1:{port_of(listening)}"
        app = Starlette(routes=RowsReceiver(rows, self.metrics).routes)
        self.server = HttpServer(app, listening, "rows-under-test")

    def post(self, body: bytes, table: str = "replays", **headers: str) -> httpx.Response:
        return httpx.post(f"{self.url}/v1/rows/{table}", content=body, headers=headers, timeout=30)

    def count(self, name: str, **labels: str) -> float:
        return self.metrics.registry.get_sample_value(f"tachograph_{name}_total", labels) or 0.0


@contextmanager
def door_to(clickhouse: Client, data_dir: Path) -> Iterator[Door]:
    """A door to a client's database."""

    def open_client() -> Client:
        name = str(clickhouse.database)
        return connect(f"{SERVER_URL.rstrip('/')}/{name}") if SERVER_URL else open_store(data_dir, name)

    store = StoreClient(open_client)
    door = Door(DerivedRows(store))
    door.server.start()
    yield door
    door.server.stop()
    store.close()


@pytest.fixture
def door(clickhouse: Client, data_dir: Path) -> Iterator[Door]:
    """A door on a fresh database."""
    with door_to(clickhouse, data_dir) as door:
        yield door


@pytest.fixture
def other_url(clickhouse: Client, data_dir: Path) -> Iterator[str]:
    """Of another store than the door's."""
    name = f"{clickhouse.database}_other"
    clickhouse.command(f"CREATE DATABASE {name}")
    clickhouse.command(f"CREATE TABLE {name}.schema_changes AS {clickhouse.database}.schema_changes")
    clickhouse.command(
        f"INSERT INTO {name}.schema_changes (file_name, sha256, applied_at) VALUES ('a', '', '2026-11-01 00:00:00')"  # noqa: S608
    )
    with read_only_url(name, data_dir) as url:
        yield url
    clickhouse.command(f"DROP DATABASE {name}")


def lines(*rows: dict[str, Any]) -> bytes:
    return b"\n".join(json.dumps(row).encode() for row in rows)


def stored(client: Client, table: str = "replays") -> int:
    rows = client.query("SELECT count() FROM {table:Identifier}", parameters={"table": table})
    return int(rows.first_row[0])


def test_rows_are_stored_as_they_were_sent(door: Door, clickhouse: Client) -> None:
    answer = door.post(lines(REPLAY, REPLAY | {"replay_id": "r2"}))
    assert (answer.status_code, answer.json()) == (200, {"stored": 2})
    (row, *_) = clickhouse.query("SELECT * EXCEPT stored_at FROM replays ORDER BY replay_id").named_results()
    assert row == REPLAY | {"made_at": row["made_at"]}
    assert clickhouse.query("SELECT toUnixTimestamp64Milli(made_at) FROM replays LIMIT 1").first_row == (1795946400500,)
    assert door.count("rows_stored", table="replays") == 2


def test_the_same_rows_sent_again_are_stored_once(door: Door, clickhouse: Client) -> None:
    body = lines(REPLAY)
    again = [door.post(body), door.post(body), door.post(gzip.compress(body), **{"content-encoding": "gzip"})]
    assert [answer.json() for answer in again] == [{"stored": 1}] * 3
    assert stored(clickhouse) == 1
    door.post(lines(REPLAY | {"replay_id": "r2"}))
    assert stored(clickhouse) == 2


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"cell": ...}, "line 3: column cell is missing"),
        ({"graph": "P128"}, "line 3: replays takes no column 'graph'; its columns are replay_id, "),
        ({"stored_at": "2020-01-01"}, "line 3: replays takes no column 'stored_at'"),
        ({"made_at": "yesterday"}, "line 3, column made_at: ClickHouse cannot store the value"),
        ({"results": {"x": "much"}}, "line 3, column results: ClickHouse cannot store the value"),
        ({"results": {"x": 2**64}}, "line 3 is not JSON: 18446744073709551616 does not fit into 64 bits"),
        ({"results": {"x": float("nan")}}, "line 3 is not JSON: NaN is no number of JSON"),
        ({"cell": None}, "line 3, column cell: ClickHouse cannot store the value"),
    ],
)
def test_a_bad_row_is_named_and_none_are_stored(
    door: Door, clickhouse: Client, change: dict[str, Any], told: str
) -> None:
    bad = {name: value for name, value in (REPLAY | change).items() if value is not ...}
    answer = door.post(lines(REPLAY) + b"\n\n" + lines(bad))
    assert answer.status_code == 400
    assert answer.json()["error"].startswith(told)
    assert "\n" not in answer.json()["error"]
    assert stored(clickhouse) == 0


@pytest.mark.parametrize(
    ("body", "headers", "status", "told"),
    [
        (b"[1]", {}, 400, "line 1 is no JSON object of columns and values"),
        (b"{", {}, 400, "line 1 is not JSON: "),
        (b"[" * 100_000, {}, 400, "line 1 is not JSON: "),
        (b"{}\n" * (ROWS_MAX + 1), {}, 400, f"{ROWS_MAX + 1} rows: send at most {ROWS_MAX} at a time"),
        (b"{}", {"content-encoding": "gzip"}, 400, "the body is not gzip: "),
        (b"{}", {"content-encoding": "br"}, 415, "content encoding br: send gzip, or none"),
        (b" " * (REQUEST_BYTES_MAX + 1), {}, 413, "the request is larger than "),
        (gzip.compress(b" " * (REQUEST_BYTES_MAX + 1)), {"content-encoding": "gzip"}, 413, "the request is larger "),
        (b"", {}, 200, None),
    ],
    ids=["list", "cut", "deep", "many", "not-gzip", "brotli", "large", "bomb", "empty"],
)
def test_what_is_no_rows_is_refused(
    door: Door, body: bytes, headers: dict[str, str], status: int, told: str | None
) -> None:
    answer = door.post(body, **headers)
    assert answer.status_code == status
    assert answer.json() == {"stored": 0} if told is None else answer.json()["error"].startswith(told)
    assert door.count("rows_requests", table="replays", status=str(status)) == 1


def test_other_tables_take_no_rows_and_the_answer_names_those_that_do(door: Door) -> None:
    for table in ("graph_executions", "schema_changes", "system.tables", "nonsense"):
        answer = door.post(lines({"x": 1}), table)
        assert answer.status_code == 404
        assert all(name in answer.json()["error"] for name in DERIVED_TABLES)
    assert door.count("rows_requests", table="unknown", status="404") == 4
    assert httpx.get(f"{door.url}/v1/rows/replays").status_code == 405


def test_while_the_store_is_away_the_sender_is_told_to_come_back() -> None:
    def away() -> Client:
        raise StoreError("ClickHouse did not answer")

    door = Door(DerivedRows(StoreClient(away)))
    door.server.start()
    try:
        answer = door.post(lines(REPLAY))
    finally:
        door.server.stop()
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert answer.json() == {"error": "ClickHouse did not answer"}


def test_a_missing_table_is_a_fault_of_the_store(door: Door, clickhouse: Client) -> None:
    clickhouse.command("DROP TABLE replays SYNC")
    answer = door.post(lines(REPLAY))
    assert answer.status_code == 503
    assert answer.json()["error"].startswith("ClickHouse does not know replays yet: ")


def test_each_derived_table_is_made_by_its_file_and_partitioned_by_its_arrival(clickhouse: Client) -> None:
    files = {change.name: change.statement for change in schema_files()}
    for table, file in DERIVED_TABLES.items():
        assert f"CREATE TABLE IF NOT EXISTS {table}\n" in files[file]
        (definition,) = clickhouse.query(
            "SELECT concat(partition_key, ' ', engine_full) FROM system.tables"
            " WHERE database = currentDatabase() AND name = {table:String}",
            parameters={"table": table},
        ).first_row
        assert definition.startswith("toYYYYMM(stored_at) ")
        assert "non_replicated_deduplication_window = 10000" in definition


def test_the_client_stores_batches_once_each(door: Door, clickhouse: Client) -> None:
    decisions = [
        {
            "replay_id": "r1",
            "service_instance_id": "engine-1",
            "cell": "cell-7",
            "graph_sequence": sequence,
            "started_at": datetime(2026, 11, 29, 10, tzinfo=UTC),
            "graph_name": "decode",
            "replayed_graph_name": "P128",
        }
        for sequence in range(BATCH_ROWS + 5)
    ]
    for _ in range(2):
        assert store_rows(door.url, "replay_decisions", decisions) == BATCH_ROWS + 5
    assert stored(clickhouse, "replay_decisions") == BATCH_ROWS + 5
    assert clickhouse.query("SELECT any(started_at), any(margin) FROM replay_decisions").first_row[1] is None
    assert door.count("rows_requests", table="replay_decisions", status="200") == 4


def test_rows_are_stored_beside_what_they_were_computed_from_or_not_at_all(
    door: Door, clickhouse: Client, clickhouse_url: str, other_url: str
) -> None:
    assert store_rows(door.url, "replays", [REPLAY], beside=clickhouse_url) == 1
    with pytest.raises(OtherStoreError) as told:
        store_rows(door.url, "replays", [REPLAY | {"replay_id": "r2"}], beside=other_url)
    assert str(told.value) == (
        f"the collector at {door.url} does not store in {other_url}: name the one that does by TACHOGRAPH_ROWS_URL"
    )
    with pytest.raises(OtherStoreError):
        storing_at(door.url, other_url)([{"alertname": "a"}])
    assert (stored(clickhouse), stored(clickhouse, "alert_history")) == (1, 0)
    with pytest.raises(RefusedError, match=r"^ClickHouse at "):
        store_rows(door.url, "replays", [REPLAY], beside=f"{clickhouse_url}_not_there")
    with pytest.raises(UnreachableError, match="no ClickHouse answers"):
        store_rows(door.url, "replays", [REPLAY], beside="http://127.0.0.1:9/tachograph")


def test_a_store_that_does_not_say_which_one_it_is_is_not_compared(
    door: Door, clickhouse: Client, clickhouse_url: str
) -> None:
    clickhouse.command("DROP TABLE schema_changes")
    assert store_rows(door.url, "replays", [REPLAY], beside=clickhouse_url) == 1


def test_the_client_says_in_one_line_what_is_wrong(door: Door) -> None:
    with pytest.raises(CallError, match=r"^the collector does not take the rows \(404\): no table 'x' takes rows"):
        store_rows(door.url, "x", [REPLAY])
    with pytest.raises(CallError, match=r"^the collector does not take the rows \(400\): line 1: column "):
        store_rows(door.url, "replays", [{"cell": "a"}])
    with pytest.raises(CallError, match="has no time zone"):
        store_rows(door.url, "replays", [REPLAY | {"made_at": datetime(2026, 1, 1)}])  # noqa: DTZ001
    with pytest.raises(CallError, match="is no URL of a collector"):
        store_rows("collector:4318", "replays", [REPLAY])
    door.server.stop()
    with pytest.raises(UnreachableError, match=r"^no collector answers at http.*: start one with"):
        store_rows(door.url, "replays", [REPLAY])


def test_the_client_sends_the_token_and_tries_again_while_the_store_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    from starlette.requests import Request
    from starlette.responses import JSONResponse, Response
    from starlette.routing import Route

    seen: list[str] = []
    statuses = iter([503, 200, 401])

    async def answer(request: Request) -> Response:
        seen.append(request.headers.get("authorization", ""))
        return JSONResponse({"stored": 1, "error": "no"}, next(statuses), {"Retry-After": "0"})

    listening = bind("127.0.0.1", 0, "no setting")
    url = f"http://127.0.0.1:{port_of(listening)}"
    server = HttpServer(Starlette(routes=[Route("/v1/rows/{table}", answer, methods=["POST"])]), listening, "rows")
    server.start()
    try:
        monkeypatch.setenv("TACHOGRAPH_INGEST_TOKENS", "first, second")
        assert store_rows(url, "replays", [REPLAY]) == 1
        monkeypatch.setenv("TACHOGRAPH_INGEST_TOKEN", "one")
        with pytest.raises(
            RefusedError, match=r"^the collector refuses the token \(401\): set TACHOGRAPH_INGEST_TOKEN"
        ):
            store_rows(url, "replays", [REPLAY])
    finally:
        server.stop()
    assert seen == ["Bearer first", "Bearer first", "Bearer one"]
