"""`tachograph doctor`: each check on a healthy collector, and with the fault that it is for."""

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from clickhouse_connect.driver.client import Client
from pydantic import SecretStr

from collector.doctor.check import Check, Verdict
from collector.doctor.doors import Doors, NotRunningError
from collector.doctor.examination import examine
from collector.doctor.store_checks import check_ttls
from collector.judging.judging import CellJudge
from collector.store.client import StoreClient
from collector.store.migrations import SchemaFile, apply_schema, schema_files
from tests.fixtures.arrivals import arrive
from tests.fixtures.contract_cases import SpanCase, request_of
from tests.fixtures.doors import PROTOBUF, open_doors
from tests.fixtures.ports import free_port
from tests.fixtures.running import free_addresses, running_collector, tachograph

SENT = 5
LEDGER_OF_EXECUTIONS = "graph_executions against the ledger"
LEDGER_OF_OUTCOMES = "request_outcomes against the ledger"


class Examined:
    """A running collector with a few executions stored, and its doctor."""

    def __init__(self, http_port: int, grpc_port: int, clickhouse_url: str) -> None:
        self.settings = SimpleNamespace(
            rows_url=f"http://127.0.0.1:{http_port}",
            otlp_endpoint=f"http://127.0.0.1:{grpc_port}",
            ingest_tokens=SecretStr(""),
            ingest_tokens_file=None,
            sql_user="default",
            sql_password=SecretStr(""),
            sql_password_file=None,
            tls_ca=None,
        )
        self.clickhouse_url = clickhouse_url

    def checks(self, **arguments: Any) -> dict[str, Check]:
        return {check.name: check for check in examine(Doors(self.settings), self.clickhouse_url, **arguments)}

    def verdict(self, name: str, **arguments: Any) -> tuple[Verdict, str]:
        check = self.checks(**arguments)[name]
        assert bool(check.advice) == (check.verdict is not Verdict.OK)
        return check.verdict, check.finding


@pytest.fixture
def examined(clickhouse: Client, clickhouse_url: str) -> Iterator[Examined]:
    with open_doors(clickhouse) as doors:
        for number in range(SENT):
            assert doors.post(request_of([execution(number)]), **PROTOBUF).status_code == 200
        yield Examined(doors.http_port, doors.grpc_port, clickhouse_url)


def execution(number: int) -> SpanCase:
    return SpanCase(
        str(number), attributes={"graph.sequence": number}, span={"span_id": (number + 1).to_bytes(8, "big")}
    )


def test_nothing_is_wrong_with_a_healthy_collector(examined: Examined) -> None:
    checks = examined.checks()
    assert {name: check.finding for name, check in checks.items() if check.verdict is not Verdict.OK} == {}
    assert checks[LEDGER_OF_EXECUTIONS].finding == f"all are there ({SENT} executions)"
    assert f"http: {SENT} received, {SENT} stored" in checks["ledger"].finding


def test_deleted_executions_are_missing(examined: Examined, clickhouse: Client) -> None:
    day = clickhouse.command("SELECT toDate(received_at) FROM graph_executions WHERE graph_sequence = 1")
    clickhouse.command("DELETE FROM graph_executions WHERE graph_sequence = 1")
    verdict, finding = examined.verdict(LEDGER_OF_EXECUTIONS)
    assert verdict is Verdict.FAULT
    assert finding == f"executions that were stored are missing: 1 of {day}"
    assert examined.verdict(LEDGER_OF_OUTCOMES)[0] is Verdict.OK


def test_deleted_outcomes_are_missing(examined: Examined, clickhouse: Client) -> None:
    clickhouse.command("TRUNCATE TABLE request_outcomes")
    verdict, finding = examined.verdict(LEDGER_OF_OUTCOMES)
    assert (verdict, finding.startswith(f"executions that were stored are missing: {SENT} of ")) == (
        Verdict.FAULT,
        True,
    )


def test_executions_that_others_stored_are_told(examined: Examined, clickhouse: Client) -> None:
    arrive(clickhouse, "another", count=3, first_s_ago=1, every_s=0.1)
    expected = (Verdict.WARNING, "3 executions more than this collector stored")
    assert examined.verdict(LEDGER_OF_EXECUTIONS) == expected


def test_a_window_that_was_shortened_is_a_fault(examined: Examined, clickhouse: Client) -> None:
    clickhouse.command("ALTER TABLE graph_executions MODIFY SETTING non_replicated_deduplication_window = 5")
    expected = (Verdict.FAULT, "graph_executions remembers 5 inserts, not 10000")
    assert examined.verdict("deduplication windows") == expected


def test_the_embedded_store_remembers_fewer_inserts_and_no_fewer_than_that(
    examined: Examined, clickhouse: Client
) -> None:
    apply_schema(clickhouse, schema_files(embedded=True))
    assert examined.verdict("deduplication windows") == (Verdict.OK, "as the schema has them")
    assert examined.verdict("schema")[0] is Verdict.OK
    clickhouse.command("ALTER TABLE cell_windows MODIFY SETTING non_replicated_deduplication_window = 999")
    expected = (Verdict.FAULT, "cell_windows remembers 999 inserts, not 1000")
    assert examined.verdict("deduplication windows") == expected


def test_a_ttl_that_was_dropped_is_a_fault(examined: Examined, clickhouse: Client) -> None:
    clickhouse.command("ALTER TABLE graph_executions REMOVE TTL")
    expected = (Verdict.FAULT, "graph_executions keeps rows for ever, not for 30 days by received_at")
    assert examined.verdict("retention") == expected


def test_a_ttl_that_was_changed_is_told(examined: Examined, clickhouse: Client) -> None:
    clickhouse.command("ALTER TABLE request_outcomes MODIFY TTL toDateTime(received_at) + INTERVAL 90 DAY")
    expected = (
        Verdict.WARNING,
        "request_outcomes keeps rows for 90 days by received_at, not for 7 days by received_at",
    )
    assert examined.verdict("retention") == expected


def test_a_ttl_other_than_what_the_collector_pins_is_a_fault(clickhouse: Client) -> None:
    files = schema_files()
    astray = check_ttls(clickhouse, files, {"replays": 5})
    assert (astray.verdict, astray.finding) == (Verdict.FAULT, "replays is pinned to 5 days and keeps rows for 90 days")
    clickhouse.command("ALTER TABLE replays MODIFY TTL toDateTime(stored_at) + INTERVAL 5 DAY")
    assert check_ttls(clickhouse, files, {"replays": 5}).verdict is Verdict.OK


def test_one_day_is_one_day(examined: Examined, clickhouse: Client) -> None:
    clickhouse.command("ALTER TABLE request_outcomes MODIFY TTL received_at + INTERVAL 1 DAY")
    told = "request_outcomes keeps rows for 1 day by received_at, not for 7 days by received_at"
    assert examined.verdict("retention") == (Verdict.WARNING, told)
    pinned = check_ttls(clickhouse, schema_files(), {"request_outcomes": 2})
    assert pinned.finding == "request_outcomes is pinned to 2 days and keeps rows for 1 day"


def test_a_ttl_without_effect_is_a_fault(examined: Examined, clickhouse: Client) -> None:
    clickhouse.command("SYSTEM STOP TTL MERGES graph_executions")
    arrive(clickhouse, "old", count=1, first_s_ago=40 * 86400)
    verdict, finding = examined.verdict("expiry")
    assert verdict is Verdict.FAULT
    assert finding == "executions of 40 days ago are there, which were to expire after 30"


def test_another_schema_is_a_fault(examined: Examined) -> None:
    first, *others = schema_files()
    added = SchemaFile("999_new.sql", "CREATE TABLE IF NOT EXISTS x")
    files = [first._replace(statement="other"), *others, added]
    expected = (Verdict.FAULT, f"999_new.sql is not applied; {first.name} differs")
    assert examined.verdict("schema", files=files) == expected


def test_a_newer_schema_is_told(examined: Examined) -> None:
    *older, newest = schema_files()
    assert examined.verdict("schema", files=older) == (Verdict.WARNING, f"{newest.name} came from a newer version")


def test_a_wrong_clock_is_told(examined: Examined) -> None:
    for ahead_s, verdict in ((10, Verdict.WARNING), (-10, Verdict.WARNING), (300, Verdict.FAULT)):
        checks = examined.checks(now_ms=lambda ahead_s=ahead_s: (time.time() + ahead_s) * 1e3)
        assert [checks[f"clock of {whose}"].verdict for whose in ("the collector", "ClickHouse")] == [verdict] * 2


def test_a_host_with_a_wrong_clock_is_named(examined: Examined, clickhouse: Client) -> None:
    arrive(clickhouse, "node-7", delay_s=-300)
    verdict, finding = examined.verdict("clocks of hosts")
    assert verdict is Verdict.WARNING
    assert finding.startswith("node-7 is 300 s ahead since 20")


def test_judging_that_clickhouse_refuses_is_a_fault(
    clickhouse: Client, clickhouse_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = CellJudge(StoreClient(lambda: clickhouse))
    with open_doors(clickhouse, looks=[judge]) as doors:
        examined = Examined(doors.http_port, doors.grpc_port, clickhouse_url)
        judge.look_once()
        assert examined.verdict("judging")[0] is Verdict.OK
        monkeypatch.setattr(
            "collector.judging.judging._statement", lambda _: "SELECT no_such_column FROM graph_executions"
        )
        judge.look_once()
        assert examined.verdict("judging")[0] is Verdict.WARNING
        judge.look_once()
        verdict, finding = examined.verdict("judging")
        assert verdict is Verdict.FAULT
        assert re.match(r"cells not judged for \d+ s \(2 looks failed\): .*no_such_column", finding), finding
        assert "\n" not in finding
        monkeypatch.undo()
        judge.look_once()
        assert examined.verdict("judging")[0] is Verdict.OK


def test_a_store_that_is_away_is_a_fault_and_the_rest_is_told(examined: Examined) -> None:
    examined.clickhouse_url = f"http://127.0.0.1:{free_port()}/tachograph"
    checks = examined.checks()
    assert checks["ClickHouse"].verdict is Verdict.FAULT
    assert checks["ClickHouse"].finding.startswith(
        f"not looked into: ClickHouse at {examined.clickhouse_url} did not answer: "
    )
    assert checks["ledger"].verdict is Verdict.OK
    assert "schema" not in checks


def test_a_door_that_is_shut_is_a_fault(examined: Examined) -> None:
    examined.settings.otlp_endpoint = f"http://127.0.0.1:{free_port()}"
    assert examined.verdict("OTLP over gRPC") == (
        Verdict.FAULT,
        f"{examined.settings.otlp_endpoint} answers UNAVAILABLE",
    )


def test_credentials_that_nobody_asks_for_are_a_fault(examined: Examined) -> None:
    examined.settings.ingest_tokens = SecretStr("token")
    examined.settings.sql_password = SecretStr("password")
    expected = (Verdict.FAULT, "anybody may send and read, though credentials are set here")
    assert examined.verdict("credentials") == expected


def test_without_a_collector_there_is_nothing_to_look_at(examined: Examined) -> None:
    examined.settings.rows_url = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(NotRunningError, match=r"^no collector answers at http://127\.0\.0\.1:\d+ .*start one with"):
        examined.checks()


def test_the_command(tmp_path: Path) -> None:
    nowhere = tachograph(free_addresses(tmp_path), "doctor")
    assert (nowhere.returncode, nowhere.stdout) == (1, "")
    assert nowhere.stderr.startswith("tachograph: no collector answers at ")
    assert nowhere.stderr.count("\n") == 1
    with running_collector(tmp_path) as addresses:
        told = tachograph(addresses, "doctor", "--json")
        metrics = httpx.get(f"http://127.0.0.1:{addresses.otlp_http_port}/metrics", timeout=60).text
    assert 'tachograph_looks_failed_total{look="judging"} 0.0' in metrics
    assert (told.returncode, told.stderr) == (0, "")
    read = json.loads(told.stdout)
    assert read["verdict"] == "ok"
    assert {check["verdict"] for check in read["checks"]} == {"ok"}
    assert {LEDGER_OF_EXECUTIONS, "judging", "store bound"} <= {check["name"] for check in read["checks"]}
