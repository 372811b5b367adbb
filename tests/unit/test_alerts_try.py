"""`tachograph alerts test`: what fires, what does not, and what is unknown, each by an exit code of its own."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import typer

from queries.alerts.loading import load_rules
from queries.alerts.sources import StoredSource
from queries.catalogue import find
from queries.commands.alerts.try_rule import try_rule, whole_answer
from queries.commands.query import pairs
from queries.errors import CallError
from queries.parameters import bound
from tachograph import Settings

HOST = {"host_name": "node-1", "clock_off_s": 0.0, "clock": "", "arrival_delay_min_s": 0.1, "arrival_delay_max_s": 1.0}
DISAGREES = {"clock_off_s": 60.0, "clock": "ahead", "arrival_delay_min_s": -60.0, "arrival_delay_max_s": -60.0}
TROUBLES_ONLY = """
alert: TroublesOnly
query: skewed_clocks
when:
  - {column: clock_off_s, above: 10}
absent: clear
severity: warning
identity: [host_name]
annotations: {summary: "{host_name} is off"}
runbook: Mend it.
"""


def tried(monkeypatch: pytest.MonkeyPatch, rule: str, *rows: dict[str, Any], rules: Path | None = None) -> int:
    """The exit code of a test of a rule whose query has these rows."""
    monkeypatch.setattr(StoredSource, "rows", lambda *_, **__: list(rows))
    monkeypatch.setattr("queries.commands.alerts.try_rule.write", lambda *_: None)
    settings = Settings(_env_file=None, alert_rules=rules)
    try:
        try_rule(settings, rule, at="-1h")
    except typer.Exit as ended:
        return ended.exit_code
    return 0


def test_what_is_clear_ends_with_0_and_what_fires_with_10(monkeypatch: pytest.MonkeyPatch) -> None:
    assert tried(monkeypatch, "ClockSkew", HOST) == 0
    assert tried(monkeypatch, "ClockSkew", HOST | DISAGREES) == 10


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        ("StuckInPlain", "stuck_engines --param at={at} --param stuck_above=0.3 --param latest_cells=3"),
        ("HostBound", "late_hosts --param from={before} --param to={at} --param gap_above_ns=1000000"),
    ],
)
def test_where_all_columns_of_its_rows_are_had_is_told_by_a_command_that_there_is(rule: str, told: str) -> None:
    chosen = load_rules().named(rule)
    query = find(str(chosen.query))
    said = whole_answer(query, chosen, datetime(2026, 11, 30, 7, tzinfo=UTC))
    expected = told.format(at="2026-11-30T07:00:00.000+00:00", before="2026-11-30T06:59:00.000+00:00")
    columns = len(query.columns)
    assert said == f"all {columns} columns, exact: tachograph query {expected} --format csv, json or parquet"
    assert bound(query, pairs(re.findall(r"--param (\S+)", said))), "it takes them"


def test_its_table_promises_no_option_that_it_lacks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    query = find("skewed_clocks")
    row = {column.name: None for column in query.columns} | HOST
    monkeypatch.setattr(StoredSource, "rows", lambda *_, **__: [row])
    try_rule(Settings(_env_file=None), "ClockSkew", at="-1h")
    said = capsys.readouterr().out
    assert "1 row" in map(str.strip, said.splitlines())
    assert f"\nall {len(query.columns)} columns, exact: tachograph query skewed_clocks --param " in said


def test_where_nothing_reported_it_is_unknown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tried(monkeypatch, "ClockSkew") == 1
    assert capsys.readouterr().out.startswith("unknown: its query has no rows then, so nothing reported")


def test_where_no_row_has_the_value_that_is_asked_for_it_is_unknown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tried(monkeypatch, "ClockSkew", HOST | {"clock_off_s": None}) == 1
    assert "unknown: none of its rows has the values" in capsys.readouterr().out
    assert tried(monkeypatch, "ClockSkew", HOST | {"host_name": "a", "clock_off_s": None}, HOST) == 0


def test_a_rule_over_troubles_alone_is_clear_without_any(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.yaml").write_text(TROUBLES_ONLY)
    assert tried(monkeypatch, "TroublesOnly", rules=tmp_path) == 0
    assert capsys.readouterr().out == "clear: its query, which lists nothing but troubles, has no rows then\n"


def test_the_future_is_refused() -> None:
    with pytest.raises(CallError, match=r"--at 2099-01-01 lies in the future") as refused:
        try_rule(Settings(_env_file=None), "ClockSkew", at="2099-01-01")
    assert refused.value.exit_code == 2
    assert "\n" not in str(refused.value)


def test_a_clock_that_is_a_little_ahead_is_not_the_future(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StoredSource, "rows", lambda *_, **__: [HOST])
    monkeypatch.setattr("queries.commands.alerts.try_rule.write", lambda *_: None)
    soon = (datetime.now(UTC) + timedelta(seconds=30)).isoformat()
    try_rule(Settings(_env_file=None), "ClockSkew", at=soon)


OVER_CELLS = """
alert: SlowCells
query: cells
when:
  - {column: tokens_per_s, below: 900}
severity: warning
identity: [host_name]
annotations: {summary: "{host_name} gives {tokens_per_s:,.0f} tokens/s"}
runbook: Look.
"""


def test_rows_of_one_identity_are_told_apart_by_their_cells(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.yaml").write_text(OVER_CELLS)
    row = {column.name: None for column in find("cells").columns} | {"host_name": "node-1", "tokens_per_s": 5.0}
    tried(monkeypatch, "SlowCells", row | {"cell": "r1"}, row | {"cell": "r2", "tokens_per_s": 1000.0}, rules=tmp_path)
    said = capsys.readouterr().out.splitlines()
    assert [one for one in said if one.startswith("node-1")] == ["node-1, cell r1: breached", "node-1, cell r2: clear"]
