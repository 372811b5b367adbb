"""Tables for the eye: units, times in human units, and no folded columns."""

import json
from datetime import datetime

import pytest
from rich.text import Text

from queries.catalogue import Column, find, load
from queries.terminal import answer_table, catalogue_json, catalogue_table, cell_text, heading, printed, visible

WHEN = datetime(2026, 11, 1, 0, 0, 0, 123456)  # noqa: DTZ001 (as the driver gives it: UTC)


@pytest.mark.parametrize(
    ("name", "unit", "value", "text"),
    [
        ("gpu_time_median_ns", "ns", 28_500_123, "28.500"),
        ("executions", "executions", 12345, "12,345"),
        ("batch_tokens", "tokens", 10.25, "10.2"),
        ("plain_fraction", "fraction", 0.98765, "0.988"),
        ("tokens_per_s", "tokens/s", 2443.91, "2,443.9"),
        ("gain_percent", "%", -4.35, "-4.3"),
        ("started_at", "time", WHEN, "2026-11-01 00:00:00.123"),
        ("graphs", "", ["P128", "decode"], "P128, decode"),
        ("attributes", "", {"all_reduce": "nccl"}, "all_reduce=nccl"),
        ("has_speculative", "", True, "yes"),
        ("host_name", "", "[red]node", r"\[red]node"),
        ("stuck", "", True, "[bold red]stuck[/]"),
        ("stuck", "", False, "no"),
        ("cell_position", "", None, ""),
    ],
)
def test_values(name: str, unit: str, value: object, text: str) -> None:
    assert cell_text(Column(name, unit, "…"), value) == text


def test_the_catalogue_for_scripts_names_every_query() -> None:
    entries = json.loads(catalogue_json(load().values()))
    assert [entry["name"] for entry in entries] == list(load())
    assert {"question", "parameters", "columns", "example"} <= entries[0].keys()
    assert not {"sql", "rows"} & entries[0].keys()


def test_headings_name_the_unit_shown() -> None:
    assert heading(Column("cost_ns", "ns", "…")) == "cost\nms"
    assert heading(Column("started_at", "time", "…")) == "started_at\nUTC"
    assert heading(Column("stuck", "", "…")) == "stuck"


def test_a_narrow_terminal_gets_fewer_columns_and_none_folded(monkeypatch: pytest.MonkeyPatch) -> None:
    query = find("cells")
    row = {column.name: None for column in query.columns} | {
        "host_name": "gpu-node-024",
        "cell": "bench-r014",
        "stuck": True,
        "inflated": True,
        "plain_fraction": 0.92,
        "tokens_per_s": 2266.8,
        "engine_package": "rc2-0b6e5f",
        "started_at": WHEN,
        "executions": 2074,
        "executions_lost": 0,
    }
    monkeypatch.setenv("COLUMNS", "80")
    narrow = answer_table(query, [row]).decode()
    assert max(map(len, narrow.splitlines())) <= 80
    assert "gpu-node-024" in narrow
    assert "2,266.8" in narrow
    assert "2026-11-01" not in narrow
    assert f"all {len(query.columns)} columns" in narrow.replace("\n", " ")
    monkeypatch.delenv("COLUMNS")
    elsewhere = answer_table(query, [row]).decode()
    assert "2026-11-01 00:00:00.123" in elsewhere
    assert max(map(len, elsewhere.splitlines())) <= 160
    assert max(map(len, catalogue_table([query]).decode().splitlines())) <= 160


def test_a_name_cannot_steer_the_terminal() -> None:
    hostile = "node-1\x1b[31m\x9b2J\r\nfaked"
    shown = printed(Text(hostile)).decode()
    assert shown == "node-1\\x1b[31m\\x9b2J\nfaked\n"  # rich drops the carriage return by itself
    assert visible(hostile) == "node-1\\x1b[31m\\x9b2J\\r\\nfaked"
