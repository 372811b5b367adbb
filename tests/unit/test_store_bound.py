"""The bound of the embedded store: what is dropped, in which order, and what is said when nothing is left to drop."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from clickhouse_connect.driver.client import Client

from collector.acceptance import QueueFullError
from collector.doctor.check import Verdict
from collector.doctor.door_checks import check_store_bound
from collector.store.bound import BoundState, StoreBound
from collector.store.client import StoreClient
from tests.fixtures.fake_store import FakeStore, request, writing


@pytest.fixture
def store_client(clickhouse: Client) -> StoreClient:
    """Holds the test's own client, which stays open."""
    return StoreClient(lambda: clickhouse)


@pytest.fixture
def days(clickhouse: Client) -> Client:
    """Executions of four days, each as large as the others, random so that they do not compress."""
    now = datetime.now(UTC)
    for day in (3, 2, 1, 0):
        clickhouse.command(
            "INSERT INTO new_executions (service_instance_id, started_at, trace_id, span_id, scheduler_candidate_estimates_ns, received_at)"
            " SELECT 'a', now64(9) + number, 't', 's', arrayMap(x -> rand64(x + number), range(100)), {received_at:DateTime64(3, 'UTC')}"
            " FROM numbers(1000)",
            parameters={"received_at": f"{now - timedelta(days=day):%Y-%m-%d %H:%M:%S}"},
        )
    return clickhouse


def kept(client: Client) -> list[int]:
    """How many days older than the newest the executions are that are there, one figure a day."""
    rows = client.query(
        "SELECT DISTINCT dateDiff('day', received_at, (SELECT max(received_at) FROM graph_executions)) FROM graph_executions ORDER BY 1"
    ).result_rows
    return [int(age) for (age,) in rows]


def size(client: Client) -> int:
    query = "SELECT sum(bytes_on_disk) FROM system.parts WHERE active AND database = currentDatabase()"
    return int(client.query(query).first_row[0])


def test_without_a_bound_nothing_is_dropped(days: Client, store_client: StoreClient) -> None:
    bound = StoreBound(store_client, 0)
    bound.look()
    assert (bound.state.bytes, bound.state.is_full, bound.trouble()) == (size(days), False, "")
    assert kept(days) == [0, 1, 2, 3]


def test_beyond_it_the_oldest_days_go_and_no_more_than_must(days: Client, store_client: StoreClient) -> None:
    bound = StoreBound(store_client, int(size(days) * 0.6))
    bound.look()
    assert kept(days) == [0, 1]
    state = bound.state
    assert (state.dropped_days, state.dropped_rows, state.is_full) == (2, 2000, False)
    assert state.dropped_bytes > 1_000_000
    assert state.bytes == size(days) <= state.bytes_max
    bound.look()
    assert bound.state.dropped_days == 2


def test_today_stays_and_where_it_is_too_much_alone_that_is_said(days: Client, store_client: StoreClient) -> None:
    bound = StoreBound(store_client, 100_000)
    bound.look()
    assert kept(days) == [0]
    assert bound.state.is_full
    assert "(TACHOGRAPH_STORE_BYTES_MAX), and holds no executions older than today's" in bound.trouble()
    days.command("TRUNCATE TABLE graph_executions")
    days.command("TRUNCATE TABLE cell_graphs")
    days.command("TRUNCATE TABLE cell_windows")
    days.command("TRUNCATE TABLE engine_seconds")
    bound.look()
    assert (bound.state.is_full, bound.trouble()) == (False, "")


def test_a_full_store_turns_requests_away_with_a_time_to_come_again(tmp_path: Path) -> None:
    full = True
    with writing(FakeStore(), tmp_path, is_store_full=lambda: full) as written:
        with pytest.raises(QueueFullError, match="TACHOGRAPH_STORE_BYTES_MAX") as refusal:
            written.writer.accept(request(1), "grpc")
        assert refusal.value.retry_after_s > 0
        assert written.metric("requests_turned_away_total", reason="store_bytes") == 1
        assert "TACHOGRAPH_STORE_BYTES_MAX" in written.writer.want_of_room()
        assert written.writer.spool_trouble() == ""
        full = False
        assert written.writer.accept(request(1), "grpc").result(10).stored == 1


@pytest.mark.parametrize(
    ("state", "verdict", "told"),
    [
        (BoundState(5_000_000_000), Verdict.OK, "5.0 GB, without a bound"),
        (BoundState(5_000_000_000, 10_000_000_000), Verdict.OK, "5.0 GB of 10.0"),
        (BoundState(9_000_000_000, 10_000_000_000), Verdict.WARNING, "9.0 GB of 10.0"),
        (
            BoundState(9_000_000_000, 10_000_000_000, dropped_rows=7, dropped_days=1),
            Verdict.WARNING,
            "7 executions of 1 day were",
        ),
        (BoundState(11_000_000_000, 10_000_000_000, is_full=True), Verdict.FAULT, "11.0 GB of 10.0"),
    ],
)
def test_the_doctor_warns_before_and_says_what_happened_after(state: BoundState, verdict: Verdict, told: str) -> None:
    check = check_store_bound({"store": state._asdict()})
    assert check.verdict == verdict
    assert told in check.finding


def test_of_a_server_the_doctor_says_nothing() -> None:
    assert check_store_bound({"store": None}).verdict == Verdict.OK
