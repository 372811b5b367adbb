"""What a collector tells of itself: alive and storing told apart, a ledger that adds up, metrics that Prometheus likes."""

import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest
from clickhouse_connect.driver.client import Client
from starlette.applications import Starlette
from starlette.testclient import TestClient

from collector.acceptance import StoreUnavailableError
from collector.receivers.health import HealthReceiver
from collector.service import Collector, CollectorSettings
from collector.spool.database import spool_file
from collector.spool.records import SpoolLimits
from collector.spool.spool import Spool
from collector.sql_endpoint.server import serving_sql
from collector.store.bound import BoundState
from collector.store.clickhouse import connection_string
from collector.store.client import StoreClient
from collector.telemetry.clock_offsets import ClockWatch
from collector.telemetry.health import Health
from collector.telemetry.metrics import CollectorMetrics
from collector.telemetry.own_metrics import ClockMetrics, LookMetrics, SamplingMetrics, SpoolMetrics, StoreMetrics
from collector.writer import Writer
from tests.fixtures.contract_cases import SpanCase, request_of
from tests.fixtures.databases import SERVER_URL
from tests.fixtures.doors import PATIENT, PROTOBUF, Doors, open_doors, serving

ROOT = Path(__file__).parents[2]
OPERATING = ROOT / "docs" / "operating.md"
PROMTOOL = shutil.which("promtool") or shutil.which(str(ROOT / ".venv" / "bin" / "promtool"))
FATES = ("stored_total", "deduplicated_total", "refused_total", "other_spans_total", "set_aside", "pending")


@pytest.fixture
def doors(clickhouse: Client) -> Iterator[Doors]:
    with open_doors(clickhouse) as opened:
        yield opened


def get(doors: Doors, path: str) -> httpx.Response:
    return httpx.get(f"http://127.0.0.1:{doors.http_port}{path}")


def execution(number: int, **attributes: object) -> SpanCase:
    return SpanCase(
        "", attributes={"graph.sequence": number, **attributes}, span={"span_id": number.to_bytes(8, "big")}
    )


def send_some_of_everything(doors: Doors) -> None:
    good = request_of([execution(1), execution(2)])
    for request in (good, request_of([execution(3)])):
        doors.over_grpc(request)
    doors.post(good, **PROTOBUF)
    doors.post(good, **PROTOBUF)
    doors.post(request_of([execution(4), execution(5, **{"graph.gpu_time_ns": -1})]), **PROTOBUF)
    doors.post(request_of([SpanCase("", span={"name": "GET /"})]), **PROTOBUF)


def test_the_ledger_adds_up_at_each_door(doors: Doors) -> None:
    send_some_of_everything(doors)
    ledger = {door: {fate: doors.metric(f"ledger_{fate}", door=door) for fate in FATES} for door in ("grpc", "http")}
    assert ledger == {
        "grpc": dict.fromkeys(FATES, 0.0) | {"stored_total": 3.0},
        "http": dict.fromkeys(FATES, 0.0)
        | {"stored_total": 1.0, "deduplicated_total": 4.0, "refused_total": 1.0, "other_spans_total": 1.0},
    }
    for door, fates in ledger.items():
        assert doors.metric("ledger_received_total", door=door) == sum(fates.values())


def test_state_is_what_the_doctor_reads(doors: Doors) -> None:
    send_some_of_everything(doors)
    state = get(doors, "/state").json()
    assert set(state) == {
        "version",
        "data_dir",
        "now_unix_ms",
        "ledger",
        "stored_by_day",
        "spool",
        "store",
        "store_id",
        "sampling",
        "disk",
        "retention_pinned",
        "looks",
    }
    assert sum(state["stored_by_day"].values()) == 4
    assert state["ledger"]["grpc"]["stored"] == 3


@pytest.mark.parametrize(("asker", "told"), [("127.0.0.1", ["/data"]), ("::1", ["/data"]), ("10.0.0.7", [])])
def test_where_the_data_lies_is_told_to_this_machine_only(asker: str, told: list[str]) -> None:
    health = HealthReceiver(Health(), CollectorMetrics(), lambda: {"version": "1", "data_dir": "/data"})
    with TestClient(Starlette(routes=health.routes), client=(asker, 50_000)) as client:
        state = client.get("/state").json()
    assert state.pop("version") == "1"
    assert list(state.values()) == told


def test_alive_and_storing_are_told_apart(tmp_path: Path) -> None:
    """Away, full, and well again: a supervisor must not restart what a person has to mend."""

    def away() -> None:
        raise StoreUnavailableError("ClickHouse did not answer")

    with closing(Spool(spool_file(tmp_path), SpoolLimits(bytes_max=70_000, free_bytes_min=0))) as spool:
        limits = PATIENT._replace(drain=PATIENT.drain._replace(answer_within_s=0.0), stop_s=0.0)
        writer = Writer(spool, away, metrics := CollectorMetrics(), limits)  # type: ignore[arg-type]
        with serving(writer, metrics) as doors:
            deadline = time.monotonic() + 60
            while (early := get(doors, "/readyz")).status_code == 200 and time.monotonic() < deadline:
                time.sleep(0.05)
            assert set(early.json()["reasons"]) == {"writer"}
            for number in range(10):
                doors.post(request_of([execution(number)]), **PROTOBUF)
            answer = get(doors, "/readyz")
            assert get(doors, "/healthz").json()["status"] == "alive"
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    told = answer.json()
    assert told["status"] == "not storing"
    assert told["reasons"] == {
        "writer": "ClickHouse does not store: ClickHouse did not answer",
        "spool": "the spool holds as many bytes as it may (TACHOGRAPH_SPOOL_BYTES_MAX)",
    }


def test_a_store_that_goes_away_and_comes_back_is_noticed_without_any_request(clickhouse: Client) -> None:
    is_away = iter([True, False])

    def open_client() -> Client:
        if next(is_away):
            raise StoreUnavailableError("ClickHouse did not answer")
        return clickhouse

    store = StoreClient(open_client, ping_every_s=0.0)
    health = Health()
    health.watch("clickhouse", store.trouble)
    assert health.troubles() == {"clickhouse": "ClickHouse does not answer: ClickHouse did not answer"}
    assert health.troubles() == {}


def test_a_store_that_hangs_holds_up_one_who_asks_and_no_other() -> None:
    asked, answered = threading.Event(), threading.Event()

    def hang() -> Client:
        asked.set()
        answered.wait(60)
        raise StoreUnavailableError("it timed out")

    store = StoreClient(hang)
    first = threading.Thread(target=store.trouble)
    first.start()
    assert asked.wait(60)
    assert store.trouble() == ""
    answered.set()
    first.join(60)
    assert store.trouble() == "ClickHouse does not answer: it timed out"


def test_a_client_that_is_in_use_at_the_end_is_left_to_its_thread(clickhouse: Client) -> None:
    store = StoreClient(lambda: clickhouse, close_within_s=0.0)
    with store.using() as client:
        store.close()
        assert client.query("SELECT 1").first_row == (1,)


def ask_until_it_hangs(ready_url: str) -> None:
    """The answer of before holds for two seconds."""
    while True:
        httpx.get(ready_url, timeout=3)


def test_a_server_that_owes_an_answer_does_not_hold_up_the_end(tmp_path: Path) -> None:
    """It may owe it for five minutes."""
    command = [sys.executable, "-m", "tests.fixtures.stand_in_server", str(tmp_path / "server")]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        settings = CollectorSettings(tmp_path / "data", f"{server.stdout.readline().strip()}/fleet")
        collector = Collector(settings)
        collector.start()
        ready = f"http://127.0.0.1:{collector.otlp_http_port}/readyz"
        deadline = time.monotonic() + 120
        while httpx.get(ready, timeout=60).status_code != 200:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        server.send_signal(signal.SIGSTOP)
        ending = threading.Thread(target=collector.stop, daemon=True)
        try:
            with pytest.raises(httpx.ReadTimeout):
                ask_until_it_hangs(ready)
            ending.start()
            ending.join(60)
            assert not ending.is_alive()
        finally:
            server.send_signal(signal.SIGCONT)


@pytest.mark.skipif(bool(SERVER_URL), reason="the store under test answers SQL itself")
def test_each_query_is_timed(clickhouse: Client, data_dir: Path) -> None:
    metrics = CollectorMetrics()
    observe_s = metrics.query_duration.observe
    with serving_sql(connection_string(data_dir), str(clickhouse.database), observe_s=observe_s) as url:
        place = url.rpartition("/")[0]
        assert httpx.post(place, content="SELECT 1").text == "1\n"
        assert httpx.post(place, content="SELEKT").status_code == 400
    assert metrics.registry.get_sample_value("tachograph_sql_query_duration_seconds_count") == 2
    assert 0 < (metrics.registry.get_sample_value("tachograph_sql_query_duration_seconds_sum") or 0) < 60


@pytest.mark.skipif(PROMTOOL is None, reason="promtool is not installed: make promtool")
def test_promtool_finds_nothing_to_say(doors: Doors, clickhouse: Client) -> None:
    send_some_of_everything(doors)
    doors.metrics.registry.register(ClockMetrics(ClockWatch(StoreClient(lambda: clickhouse)).offsets))
    exposition = get(doors, "/metrics").content
    checked = subprocess.run(
        [str(PROMTOOL), "check", "metrics"], input=exposition, capture_output=True, timeout=60, check=False
    )
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, b"", b"")
    bad = subprocess.run(
        [str(PROMTOOL), "check", "metrics"], input=b"# TYPE a counter\na 1\n", capture_output=True, check=False
    )
    assert bad.returncode != 0


def test_every_metric_stands_in_the_documentation(tmp_path: Path) -> None:
    metrics = CollectorMetrics()
    with closing(Spool(spool_file(tmp_path))) as spool:
        metrics.registry.register(SpoolMetrics(spool))
        metrics.registry.register(ClockMetrics(list))
        metrics.registry.register(StoreMetrics(BoundState))
        metrics.registry.register(SamplingMetrics(lambda: None))
        metrics.registry.register(LookMetrics(dict))
        told = re.findall(r"^# HELP (\S+) (.*)$", metrics.exposition().decode(), re.MULTILINE)
    documented = re.findall(r"^\| `(tachograph_\w+)` \| (.*) \|$", OPERATING.read_text("utf-8"), re.MULTILINE)
    assert documented == sorted(told)
