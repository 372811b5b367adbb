"""Retention: what is told, changed and pinned, always read back from the parts."""

import json
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from clickhouse_connect.driver.client import Client

from collector.commands import retention
from collector.control.orders import Holdings, Orders
from collector.store.retention import Retention, RetentionError, RetentionSettingError, StoreRetention, parsed_retention
from collector.store.table_rules import rules_found

DAYS = (0, 1, 5, 12, 20)
ROWS_A_DAY = 100


@pytest.fixture
def aged(clickhouse: Client) -> Client:
    """Executions that arrived on five days, the oldest 20 days ago."""
    for days in DAYS:
        clickhouse.command(
            "INSERT INTO new_executions (service_instance_id, started_at, trace_id, span_id, graph_name, received_at)"
            " SELECT 'a', now64(9) + number, toString(number), 'x', 'P128', now64(3) - toIntervalDay({days:UInt32})"
            " FROM numbers({rows:UInt32})",
            parameters={"days": days, "rows": ROWS_A_DAY},
        )
    return clickhouse


def test_a_database_of_tests_keeps_rows_dated_long_ago(clickhouse: Client) -> None:
    """Tests date what they store; without this each of them would fail on a day of its own, once a merge comes by."""
    for number in range(2):
        clickhouse.command(
            "INSERT INTO new_executions (service_instance_id, started_at, trace_id, span_id, graph_name, received_at)"
            " SELECT 'a', '2020-01-01', toString({number:UInt8}), 'x', 'P128', '2020-01-01'",
            parameters={"number": number},
        )
    for table in ("graph_executions", "cell_windows", "cell_graphs"):
        clickhouse.command(f"OPTIMIZE TABLE {table} FINAL")
        assert clickhouse.command(f"SELECT count() > 0 FROM {table}") == 1, table  # noqa: S608 -- names of our own tables
    assert clickhouse.command("SELECT count() FROM graph_executions") == 2


def told(client: Client, table: str = "graph_executions", **pinned: int) -> Retention:
    return next(one for one in StoreRetention(client, pinned=pinned).told() if one.table == table)


def test_each_table_is_told_with_what_it_holds(aged: Client) -> None:
    executions = told(aged)
    assert (executions.rows, executions.days, executions.days_of_schema) == (len(DAYS) * ROWS_A_DAY, 30, 30)
    assert executions.bytes > 0
    assert executions.oldest is not None
    age = datetime.now(UTC).replace(tzinfo=None) - datetime.fromisoformat(executions.oldest).replace(tzinfo=None)
    assert age // timedelta(days=1) == 20
    replays = told(aged, "replays")
    assert (replays.rows, replays.oldest, replays.newest, replays.expired_rows) == (0, None, None, 0)


def test_the_list_says_why_rollups_have_fewer_rows_than_before(
    clickhouse: Client, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    orders = Orders(Holdings(lambda: nullcontext(clickhouse), "", {}, None))
    monkeypatch.setattr(retention, "taker", lambda _: nullcontext(orders))
    asked: Any = SimpleNamespace(invoked_subcommand=None, params={})
    retention.show(asked, asked)
    table, _, caption = capsys.readouterr().out.rstrip().rpartition("\n")
    assert "cell_graphs" in table
    assert caption.strip() == "Rows of rollups are merged in the background: fewer of them hold the same."
    retention.show(asked, asked, as_json=True)
    assert {one["table"] for one in json.loads(capsys.readouterr().out)} >= {"graph_executions", "cell_graphs"}


def test_rollups_are_kept_longer_than_what_they_are_made_of(clickhouse: Client) -> None:
    days = {one.table: one.days for one in StoreRetention(clickhouse).told()}
    assert days["cell_graphs"] >= 6 * days["graph_executions"]


def test_a_shorter_retention_deletes_at_once_and_says_what(aged: Client) -> None:
    retention = StoreRetention(aged)
    assert retention.would_expire("graph_executions", 10) == 2 * ROWS_A_DAY
    changed = retention.change("graph_executions", 10)
    assert (changed.days_before, changed.days, changed.rows_before, changed.rows) == (30, 10, 500, 300)
    assert changed.expired_rows == 0
    active = "SELECT sum(rows) FROM system.parts WHERE active AND database = currentDatabase() AND table = 'graph_executions'"
    assert aged.query(active).first_row == (300,)
    assert aged.query("SELECT count() FROM graph_executions").first_row == (300,)
    assert rules_found(aged)["graph_executions"].ttl_days == 10


def test_a_longer_retention_deletes_nothing(aged: Client) -> None:
    changed = StoreRetention(aged).change("graph_executions", 400)
    assert (changed.rows_before, changed.rows, told(aged).days) == (500, 500, 400)


def test_a_table_that_goes_by_a_date_can_be_changed_too(aged: Client) -> None:
    before = told(aged, "cell_graphs").rows
    changed = StoreRetention(aged).change("cell_graphs", 5)
    assert 0 < changed.rows < before
    assert rules_found(aged)["cell_graphs"][1:3] == ("received_on", 5)


def test_what_the_settings_pin_holds_from_the_start_and_cannot_be_changed_otherwise(aged: Client) -> None:
    pinning = StoreRetention(aged, pinned={"graph_executions": 60, "replays": 90})
    assert pinning.pin() == ["graph_executions"]
    assert pinning.pin() == []
    assert told(aged).days == 60
    with pytest.raises(RetentionError, match=r"60 days by the collector's TACHOGRAPH_RETENTION: change it there"):
        pinning.change("graph_executions", 10)
    assert told(aged, graph_executions=61).days_pinned == 61


def test_a_table_that_this_store_does_without_is_one_clear_line(clickhouse: Client) -> None:
    clickhouse.command("DROP TABLE replays")
    for order in (StoreRetention(clickhouse).would_expire, StoreRetention(clickhouse).change):
        with pytest.raises(RetentionError, match="this store has no table replays"):
            order("replays", 3)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("graph_executions", "write TABLE=DAYS"),
        ("graph_executions=x", "write TABLE=DAYS"),
        ("graph_executions=-1", "write TABLE=DAYS"),
        ("graph_executions=0", "cannot be kept for 0 days"),
        ("graph_executions=99999", "cannot be kept for 99999 days"),
        ("replays=5,cell_graphs=3,replays=7", "names replays twice"),
        ("otlp_requests=3", "no table 'otlp_requests' keeps rows for a time; these do: graph_executions"),
    ],
)
def test_what_is_no_retention_is_one_clear_line(text: str, wrong: str) -> None:
    with pytest.raises(RetentionSettingError, match=wrong) as error:
        parsed_retention(text)
    assert error.value.exit_code == 2
    assert "\n" not in str(error.value)


def test_several_tables_in_one_setting() -> None:
    assert parsed_retention("") == {}
    assert parsed_retention(" graph_executions=7, cell_graphs=400 replays=3,") == {
        "graph_executions": 7,
        "cell_graphs": 400,
        "replays": 3,
    }
