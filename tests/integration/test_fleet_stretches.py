"""The Fleet page's day: cells gathered into stretches, on the real engine."""

from typing import Any

from clickhouse_connect.driver.client import Client

from engine_hooks.contract.execution import GraphExecution
from tests.fixtures.asking import CELL, ask, moment, picked
from tests.fixtures.query_rows import insert, round_of

WINDOW_MS = 30_000
ANY_LENGTH = {"minimum_decoding_s": 0}


def two_cells() -> list[GraphExecution]:
    """A speculative cell, and half a minute later a plain one."""
    return [
        round_of(0, 0, "P128", 28),
        round_of(1, 28, "P128", 28),
        round_of(2, WINDOW_MS, "decode", 13),
        round_of(3, WINDOW_MS + 13, "decode", 13),
    ]


def stretches(client: Client, **values: Any) -> list[dict[str, Any]]:
    return ask(client, "fleet_stretches", **ANY_LENGTH, **values)


def test_a_stretch_names_its_worst_cell(clickhouse: Client) -> None:
    insert(clickhouse, two_cells())
    golden = {
        "service_instance_id": "engine-1",
        "cell": str(int(CELL) + 30),
        "host_name": "node-1",
        "engine_package": "main",
        "started_at": moment(0),
        "ended_at": moment(WINDOW_MS + 26),
        "cells": 2,
        "cells_stuck": 1,
        "stuck": True,
        "has_speculative": True,
        "plain_fraction": 26 / 82,
        "plain_stuck_s": 0.026,
        "executions": 4,
        "tokens_per_s": 28 / 0.082,
    }
    (row,) = stretches(clickhouse, stretch_s=60)
    assert golden == picked(row, golden)


def test_cells_belong_to_the_stretch_that_they_began_in(clickhouse: Client) -> None:
    insert(clickhouse, two_cells())
    newer, older = stretches(clickhouse, stretch_s=30)
    assert (newer["stuck"], older["stuck"]) == (True, False)
    assert (newer["cells"], older["cells"]) == (1, 1)


def test_it_agrees_with_cells(clickhouse: Client) -> None:
    insert(clickhouse, two_cells())
    cells = {row["cell"]: row for row in ask(clickhouse, "cells", **ANY_LENGTH)}
    for row in stretches(clickhouse, stretch_s=30):
        alone = cells[row["cell"]]
        same = (
            "stuck",
            "has_speculative",
            "plain_fraction",
            "tokens_per_s",
            "executions",
            "started_at",
            "ended_at",
            "last_received_at",
        )
        assert picked(row, {name: alone[name] for name in same}) == {name: alone[name] for name in same}


def test_by_concurrency(clickhouse: Client) -> None:
    insert(clickhouse, [round_of(n, 13 * n, "decode", 13, cell_concurrency=8 * (n + 1)) for n in range(2)])
    assert sum(row["executions"] for row in stretches(clickhouse)) == 2
    assert stretches(clickhouse, concurrency=64) == []
