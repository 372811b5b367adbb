"""The doctor's checks of what a collector says of itself, its rules for tables, and its report."""

import io
import json
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from collector.commands.doctor import doctor
from collector.doctor.check import ToldErrors, Verdict, fault, ok, warning
from collector.doctor.door_checks import (
    check_credentials,
    check_disk,
    check_ledger,
    check_looks,
    check_readiness,
    check_set_aside,
    check_waiting,
)
from collector.doctor.doors import Answer, Doors
from collector.doctor.report import as_json, print_table, worst
from collector.repeated_look import LookState
from collector.spool.records import Ledger, SpoolState
from collector.store.clickhouse import WrongSettingError, first_line
from collector.store.migrations import schema_files
from collector.store.table_rules import TableRules, rules_of, rules_wanted

GB = 10**9


def state(**changed: Any) -> dict[str, Any]:
    return {
        "now_unix_ms": 1_000_000,
        "ledger": {"grpc": Ledger(received=3, stored=2, pending=1)._asdict()},
        "spool": SpoolState()._asdict(),
        "disk": {"free_bytes": 50 * GB, "total_bytes": 100 * GB, "free_bytes_min": GB},
    } | changed


class StandIn(Doors):
    """Doors that answer what a test says."""

    def __init__(self, *, to_us: int = 200, to_strangers: int = 401, body: dict[str, Any] | None = None) -> None:
        self.tokens_are_set = self.password_is_set = True
        self.to_us, self.to_strangers, self.body = to_us, to_strangers, body or {}

    def read(self, _path: str, *, anonymously: bool = False) -> Answer:
        return Answer(self.to_strangers if anonymously else self.to_us, self.body)

    def send_nothing(self, *, anonymously: bool = False) -> Answer:
        return self.read("", anonymously=anonymously)


def test_a_ledger_that_does_not_add_up_is_a_fault() -> None:
    assert check_ledger(state()).verdict is Verdict.OK
    wrong = check_ledger(state(ledger={"http": Ledger(received=3, stored=1, pending=1)._asdict()}))
    assert (wrong.verdict, wrong.finding) == (Verdict.FAULT, "http: 3 received, 2 accounted for")


def test_requests_set_aside_are_told() -> None:
    assert check_set_aside(state()).verdict is Verdict.OK
    aside = check_set_aside(state(spool=SpoolState(set_aside_requests=2)._asdict()))
    assert (aside.verdict, aside.finding) == (Verdict.WARNING, "2 requests that ClickHouse refuses")


@pytest.mark.parametrize(("age_ms", "verdict"), [(59_000, Verdict.OK), (61_000, Verdict.WARNING)])
def test_what_waits_for_long_is_told(age_ms: int, verdict: Verdict) -> None:
    waits = SpoolState(pending_requests=1, oldest_unix_ms=1_000_000 - age_ms)
    assert check_waiting(state(spool=waits._asdict())).verdict is verdict


@pytest.mark.parametrize(
    ("free", "verdict"), [(2 * GB, Verdict.OK), (2 * GB - 1, Verdict.WARNING), (GB - 1, Verdict.FAULT)]
)
def test_a_disk_that_fills_up_is_told(free: int, verdict: Verdict) -> None:
    disk = {"free_bytes": free, "total_bytes": 100 * GB, "free_bytes_min": GB}
    assert check_disk(state(disk=disk)).verdict is verdict


@pytest.mark.parametrize(
    ("free", "turned_away_for", "verdict"),
    [
        (64 * 1024**2, "", Verdict.OK),
        (64 * 1024**2 - 1, "", Verdict.WARNING),
        (GB, "disk_full", Verdict.FAULT),
        (GB, "disk_free", Verdict.FAULT),
        (0, "spool_gone", Verdict.FAULT),
        (GB, "spool_bytes", Verdict.OK),
    ],
)
def test_a_disk_that_nothing_is_to_be_left_of_is_told_too(free: int, turned_away_for: str, verdict: Verdict) -> None:
    disk = {"free_bytes": free, "total_bytes": 100 * GB, "free_bytes_min": 0}
    spool = SpoolState()._asdict() | {"turned_away_for": turned_away_for}
    assert check_disk(state(disk=disk, spool=spool)).verdict is verdict


def test_what_is_not_stored_is_a_fault_with_its_reasons() -> None:
    assert check_readiness(StandIn(), ToldErrors()).verdict is Verdict.OK
    reasons = {"reasons": {"spool": "it is full", "clickhouse": "it is away"}}
    check = check_readiness(StandIn(to_us=503, body=reasons), ToldErrors())
    assert (check.verdict, check.finding) == (Verdict.FAULT, "it is full; it is away")


def test_one_and_the_same_error_is_told_once() -> None:
    errors = ToldErrors()
    reasons = {"writer": "nothing is stored: E: refused", "clickhouse": "no answer: E: refused", "spool": "full: F"}
    storing = check_readiness(StandIn(to_us=503, body={"reasons": reasons}), errors)
    assert storing.finding == "nothing is stored; no answer: E: refused; full: F"
    failing = {"judging": "E: refused", "sampling": "G"}
    looks = {name: LookState("not done", 0, 2, 2, 9, error)._asdict() for name, error in failing.items()}
    judging, sampling = check_looks(state(looks=looks), errors)
    assert judging.finding == "not done for 9 s (2 looks failed), as storing says"
    assert sampling.finding == "not done for 9 s (2 looks failed): G"


def test_strangers_have_to_be_kept_out() -> None:
    assert check_credentials(StandIn()).verdict is Verdict.OK
    assert check_credentials(StandIn(to_strangers=200)).verdict is Verdict.FAULT


def test_credentials_that_the_collector_asks_for_have_to_be_set_here() -> None:
    doors = StandIn(to_us=401)
    doors.tokens_are_set = doors.password_is_set = False
    assert check_credentials(doors).finding == "the collector asks for credentials, and none are set here"
    doors.to_us = 200
    assert check_credentials(doors).verdict is Verdict.OK


def test_every_table_that_keeps_rows_has_a_window_and_most_a_ttl() -> None:
    wanted = rules_wanted(schema_files())
    assert wanted["graph_executions"] == TableRules(10_000, "received_at", 30)
    assert wanted["cell_graphs"] == TableRules(10_000, "received_on", 180)
    assert wanted["request_outcomes"].ttl_days == 7
    assert {table for table, rules in wanted.items() if not rules.window or not rules.ttl_days} == set()


def test_what_the_embedded_store_is_to_remember_is_read_from_its_own_files() -> None:
    changed = {
        table: rules.window
        for table, rules in rules_wanted(schema_files(embedded=True)).items()
        if rules != rules_wanted(schema_files())[table]
    }
    filled_by_each_insert = ("graph_executions", "request_outcomes", "cell_graphs", "cell_windows", "engine_seconds")
    assert changed == dict.fromkeys(filled_by_each_insert, 1_000)


def test_rules_are_read_as_clickhouse_writes_them() -> None:
    found = rules_of(
        "ReplicatedMergeTree('/x', 'r') PARTITION BY toYYYYMMDD(received_at) ORDER BY x"
        " TTL toDateTime(received_at) + toIntervalDay(30) SETTINGS index_granularity = 8192"
    )
    assert found == TableRules(0, "received_at", 30, is_replicated=True)


def test_the_report_says_the_worst_and_what_to_do() -> None:
    checks = [ok("a", "well"), warning("b", "odd", "look"), fault("c", "[broken]", "mend it")]
    assert [worst(checks[:n]) for n in range(4)] == [Verdict.OK, Verdict.OK, Verdict.WARNING, Verdict.FAULT]
    assert json.loads(as_json(checks))["checks"][2] == {
        "name": "c",
        "verdict": "fault",
        "finding": "[broken]",
        "advice": "mend it",
    }
    told = io.StringIO()
    print_table(checks, Console(width=100, file=told))
    assert "[broken]" in told.getvalue()


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            "Error HTTPConnectionPool(host='h', port=1): Max retries exceeded with url: /?query_id=2b4d (Caused by"
            " NewConnectionError(\"HTTPConnection(host='h', port=1): Failed to establish a new connection: [Errno 111]"
            ' Connection refused")) executing HTTP request attempt 1 (http://h:1)',
            "Failed to establish a new connection: [Errno 111] Connection refused",
        ),
        (
            "Code: 60. DB::Exception: Table x does not exist. (UNKNOWN_TABLE)\nmore",
            "Code: 60. DB::Exception: Table x does not exist. (UNKNOWN_TABLE)",
        ),
        ("", "ValueError"),
    ],
    ids=["refused", "exception", "nothing"],
)
def test_an_error_of_the_driver_is_told_in_few_words(said: str, told: str) -> None:
    assert first_line(ValueError(said)) == told


@pytest.mark.parametrize("url", ["nonsense", "ftp://x", "http://", "http://[x", "http://h:99999/d"])
def test_what_is_no_url_is_said_and_no_other_server_asked(url: str) -> None:
    with pytest.raises(WrongSettingError, match="is no ClickHouse URL: give") as wrong:
        doctor(SimpleNamespace(clickhouse_url=url))  # type: ignore[arg-type]
    assert wrong.value.exit_code == 2
