"""The seventeen cells whose cause is known: the verdicts of the queries against the truth."""

import json
from pathlib import Path
from typing import Any

import pytest
from clickhouse_connect.driver.client import Client

from queries.runner import asked
from tests.fixtures.query_rows import insert_file

Truth = dict[str, dict[str, Any]]


def ask(client: Client, name: str) -> list[dict[str, Any]]:
    sql, parameters = asked(name, {})
    return list(client.query(sql, parameters=parameters).named_results())


@pytest.fixture
def truth(cases: Path) -> Truth:
    cells = json.loads((cases / "cells/truth.json").read_text())["cells"]
    return {cell["resource"]["service.instance.id"]: cell for cell in cells}


@pytest.fixture
def labelled(clickhouse: Client, cases: Path, truth: Truth) -> Client:
    for cell in truth.values():
        insert_file(clickhouse, cases / "cells" / cell["file"])
    return clickhouse


def test_the_labelled_cells(labelled: Client, truth: Truth) -> None:
    cells = {row["service_instance_id"]: row for row in ask(labelled, "cells")}
    assert cells.keys() == truth.keys()
    for instance, cell in truth.items():
        check_cell(cells[instance], cell)
    stuck = ask(labelled, "stuck_plain")
    assert {row["service_instance_id"] for row in stuck} == {key for key, cell in truth.items() if cell["stuck"]}
    for row in stuck:
        check_stuck(row, truth[row["service_instance_id"]])
    check_inflation(ask(labelled, "estimate_inflation"), truth)


def check_cell(row: dict[str, Any], cell: dict[str, Any]) -> None:
    fraction = cell["plain_fraction"]
    assert row["plain_fraction"] == pytest.approx(fraction["by_time_recorded"], abs=1e-9), cell["id"]
    assert row["has_speculative"] is cell["has_speculative"], cell["id"]
    assert row["stuck"] is cell["stuck"], cell["id"]
    assert row["inflated"] is (cell["fault"] == "estimate_inflation"), cell["id"]
    assert row["executions"] == cell["sequence"]["recorded"]
    assert row["executions_lost"] == len(cell["sequence"]["lost"])
    assert row["batch_tokens_emitted"] == cell["recorded_sums"]["batch_tokens_emitted"]
    assert row["host_name"] == cell["resource"]["host.name"]
    if not cell["sequence"]["lost"]:
        assert row["tokens_per_s"] == pytest.approx(cell["tokens"]["per_s"], rel=0.003)
        assert row["turned_s"] == pytest.approx(cell["decisions"]["seconds_changed_for_the_worse"], abs=0.2), cell["id"]


def check_stuck(row: dict[str, Any], cell: dict[str, Any]) -> None:
    longest = max(cell["plain_spans"], key=lambda span: span["seconds_in_cell"])
    # A stretch counts from its first submission to its last completion, so up to two waits in the queue more.
    assert row["plain_stretch_s"] == pytest.approx(longest["seconds_in_cell"], abs=0.06), cell["id"]
    # Plain is truly right exactly where the best speculative graph would have given less.
    assert (row["gain_percent"] < 0) is (cell["being_in_plain"]["verdict"] == "right"), cell["id"]
    assert row["inflated"] is cell["stuck_by_fault"], cell["id"]


def check_inflation(rows: list[dict[str, Any]], truth: Truth) -> None:
    turned = {row["service_instance_id"] for row in rows if row["decisions_turned"]}
    inflated = {row["service_instance_id"] for row in rows if row["inflated"]}
    assert inflated == {key for key, cell in truth.items() if cell["fault"] == "estimate_inflation"}
    assert turned == inflated, "no decision of another cell was turned"
    moved = {(key, move["graph"]) for key, cell in truth.items() for move in cell["estimate_moves"] if move["recorded"]}
    overcharged = {(row["service_instance_id"], row["graph"]) for row in rows if row["decisions_overcharged"]}
    assert moved <= overcharged | {key for key in moved if not rose_by_a_tenth(truth, *key)}


def rose_by_a_tenth(truth: Truth, instance: str, graph: str) -> bool:
    moves = [move for move in truth[instance]["estimate_moves"] if move["graph"] == graph]
    return any(move["estimate_after_ns"] > 1.12 * move["gpu_time_ns"] for move in moves)
