"""ClickHouse away, slow, failing or refusing, behind a proxy of the test's own: the senders notice nothing, nothing
acknowledged is lost, and each execution is stored once, in order."""

import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest
from clickhouse_connect.driver.client import Client

from collector.service import Collector, CollectorSettings
from collector.spool.database import opened_beside, spool_file
from collector.spool.drain import DrainLimits
from collector.spool.ledger import read_ledger
from collector.spool.records import Ledger
from collector.store.clickhouse import connect
from collector.writer import WriterLimits
from tests.conftest import ROOT
from tests.fixtures.databases import SERVER_URL
from tests.fixtures.faulty_proxy import FaultyProxy, faulty_proxy, with_database
from tests.fixtures.senders import eventually, senders, sending

LIMITS = WriterLimits(drain=DrainLimits(gather_s=0.02, retry_wait_max_s=0.2, answer_within_s=0.5))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a ClickHouse that can be written: a real server where one is named, else a stand-in."""
    if SERVER_URL:
        yield SERVER_URL.rpartition("/")[0] if SERVER_URL.count("/") > 2 else SERVER_URL
        return
    directory = tmp_path_factory.mktemp("server")
    command = [sys.executable, "-m", "tests.fixtures.stand_in_server", str(directory / "data")]
    with subprocess.Popen(
        command, cwd=directory, env={"PYTHONPATH": str(ROOT)}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()


class Setting(NamedTuple):
    """A ClickHouse behind a proxy, and a database of the test's on it."""

    proxy: FaultyProxy
    database: str
    direct_url: str
    data_dir: Path

    @contextmanager
    def collecting(self) -> Iterator[Collector]:
        url = with_database(self.proxy.url, self.database)
        with Collector(CollectorSettings(self.data_dir, url, disk_free_bytes_min=0), LIMITS) as collector:
            yield collector

    def pending(self) -> int:
        """Requests in the spool."""
        with opened_beside(spool_file(self.data_dir)) as spool:
            return int(spool.execute("SELECT count() FROM requests").fetchone()[0])

    def ledger(self) -> Ledger:
        with opened_beside(spool_file(self.data_dir)) as spool:
            return read_ledger(spool).get("http", Ledger())

    @contextmanager
    def client(self) -> Iterator[Client]:
        with connect(self.direct_url) as client:
            yield client


@pytest.fixture
def setting(server: str, tmp_path: Path) -> Iterator[Setting]:
    name = f"faults_{uuid.uuid4().hex[:8]}"
    with faulty_proxy(server) as proxy:
        made = Setting(proxy, name, with_database(server, name), tmp_path)
        yield made
    with made.client() as client:
        client.command(f"DROP DATABASE {name} SYNC")


def wait_for(acknowledged: object, more: int = 200) -> None:
    """Until so many more executions were acknowledged."""
    assert callable(acknowledged)
    before = acknowledged()
    eventually(lambda: acknowledged() >= before + more)


def assert_all_stored(setting: Setting, acknowledged: int) -> None:
    """Everything that was acknowledged, once, and of each engine in the order of its sending."""
    eventually(lambda: setting.pending() == 0)
    ledger = setting.ledger()
    assert ledger.adds_up
    assert ledger.pending == ledger.set_aside == ledger.refused == 0
    with setting.client() as client:
        rows, different, engines = client.query(
            "SELECT count(), uniqExact(service_instance_id, graph_sequence), uniqExact(service_instance_id) FROM graph_executions"
        ).first_row
        assert rows == different == ledger.stored >= acknowledged, came_later(client, ledger.stored)
        assert engines == 4
        late = client.query(
            "SELECT countIf(received_at < before) FROM (SELECT received_at, lagInFrame(received_at, 1, received_at)"
            " OVER (PARTITION BY service_instance_id ORDER BY graph_sequence"
            " ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS before FROM graph_executions)"
        ).first_row
        assert late == (0,)


def came_later(client: Client, stored: int) -> str:
    """Of executions that are not there: whether they are some time afterwards, and what ClickHouse says of their requests."""
    asked = "SELECT (SELECT count() FROM graph_executions), (SELECT sum(stored) FROM request_outcomes)"
    with suppress(AssertionError):
        eventually(lambda: client.query(asked).first_row[0] == stored, within_s=30)
    executions, outcomes = client.query(asked).first_row
    return f"after up to 30 s: {executions} executions are there, outcomes say {outcomes}, the ledger {stored}"


def status_of(collector: Collector) -> int:
    return httpx.get(collector.urls()["otlp_http"].replace("v1/traces", "readyz")).status_code


def test_starts_and_accepts_while_clickhouse_is_away_and_makes_the_schema_when_it_comes(setting: Setting) -> None:
    setting.proxy.away = True
    with setting.collecting() as collector, senders() as made:
        with sending(made, collector.urls()["otlp_http"]) as acknowledged:
            wait_for(acknowledged)
            assert setting.pending() > 0
            assert status_of(collector) == 503
        setting.proxy.mend()
        assert_all_stored(setting, acknowledged())
        eventually(lambda: status_of(collector) == 200)
        assert all(sender.statuses == {200} for sender in made)


@pytest.mark.parametrize("fault", ["away", "500s", "slow", "refusing", "answers_lost", "hung_up"])
def test_a_fault_that_passes_is_not_noticed(setting: Setting, fault: str) -> None:
    with setting.collecting() as collector, senders() as made:
        with sending(made, collector.urls()["otlp_http"]) as acknowledged:
            wait_for(acknowledged)
            eventually(lambda: setting.ledger().stored > 0)
            begin(setting, fault)
            longest = time_to(lambda: wait_for(acknowledged, 400))
            assert longest < 15, "senders are kept waiting"
            end(setting, fault)
            wait_for(acknowledged)
        assert all(sender.statuses == {200} for sender in made)
        assert_all_stored(setting, acknowledged())


def time_to(work: object) -> float:
    assert callable(work)
    began = time.monotonic()
    work()
    return time.monotonic() - began


def begin(setting: Setting, fault: str) -> None:
    proxy = setting.proxy
    if fault == "away":
        proxy.away = True
    elif fault == "500s":
        proxy.status = 500
    elif fault == "slow":
        proxy.slow_inserts_s = 1.0
    elif fault == "answers_lost":
        proxy.lost_answers = 5
    elif fault == "hung_up":
        proxy.hung_up = 5
    else:
        with setting.client() as client:
            client.command("ALTER TABLE request_outcomes DROP COLUMN other_spans")
        eventually(lambda: bool(proxy.refusals))


def end(setting: Setting, fault: str) -> None:
    if fault == "answers_lost":
        eventually(lambda: setting.proxy.lost_answers <= 0)
    if fault == "hung_up":
        eventually(lambda: setting.proxy.hung_up <= 0)
    if fault == "refusing":
        with setting.client() as client:
            client.command("ALTER TABLE request_outcomes ADD COLUMN other_spans UInt64")
    setting.proxy.mend()


def test_what_waited_goes_in_with_few_inserts(setting: Setting) -> None:
    """An insert costs as much as storing some 5,000 executions: so it drains faster than it came."""
    with setting.collecting() as collector, senders(pause_s=0.05) as made:
        url = collector.urls()["otlp_http"]
        with sending(made, url):
            eventually(lambda: setting.ledger().stored > 0)
        setting.proxy.away = True
        with sending(made, url) as acknowledged:
            wait_for(acknowledged, 3_000)
        assert setting.pending() >= 150
        before = setting.proxy.inserts
        setting.proxy.mend()
        assert_all_stored(setting, acknowledged())
        assert setting.proxy.inserts - before <= 8


def test_stopped_while_clickhouse_is_away_the_next_start_stores(setting: Setting) -> None:
    with senders() as made:
        setting.proxy.away = True
        with setting.collecting() as collector:
            with sending(made, collector.urls()["otlp_http"]) as acknowledged:
                wait_for(acknowledged)
            began = time.monotonic()
        assert time.monotonic() - began < 10
        setting.proxy.mend()
        with setting.collecting():
            assert_all_stored(setting, acknowledged())
