"""The rollup by cell: exactly what the executions add up to, and never too narrow about what has to be read."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from clickhouse_connect.driver.client import Client

from engine_hooks.contract.span import EXECUTION_COLUMNS
from queries.catalogue import SQL_ROOT, load
from queries.parameters import bound
from tests.fixtures.asking import ask, picked
from tests.fixtures.databases import database
from tests.fixtures.generated import generate
from tests.fixtures.query_rows import ENGINE, believing, insert, round_of, row_of

ROLLED_UP = """
    SELECT service_instance_id, cell, graph_name, sum(executions) AS n, min(first_started_at), max(last_started_at), max(last_ended_at),
        min(sequence_first), max(sequence_last), groupBitmapMerge(sequences), sum(gpu_time_ns),
        sum(ordinary_executions), sum(ordinary_wall_time_ns), sum(tokens_emitted), max(cost_model_latest).2, any(cell_id)
    FROM cell_graphs GROUP BY service_instance_id, cell, graph_name ORDER BY service_instance_id, cell, graph_name
"""
COUNTED = """
    SELECT service_instance_id, cell, graph_name, count(), min(e.started_at), max(e.started_at), max(addNanoseconds(e.started_at, duration_ns)),
        min(graph_sequence), max(graph_sequence), uniqExact(graph_sequence), sum(graph_gpu_time_ns),
        countIf(graph_purpose = 'ordinary'), sumIf(graph_wall_time_ns, graph_purpose = 'ordinary'),
        ifNull(sum(batch_tokens_emitted), 0), argMaxIf(scheduler_cost_model, e.started_at, scheduler_cost_model != ''), any(cell_id)
    FROM (SELECT *, cell, duration_ns, graph_gpu_time_ns, graph_wall_time_ns FROM graph_executions) AS e GROUP BY service_instance_id, cell, graph_name ORDER BY service_instance_id, cell, graph_name
"""


@pytest.fixture(scope="module")
def fleet(store: Client) -> Iterator[Client]:
    """Four engines with fifty cells each, four in a hundred of them fooled."""
    with database(store):
        generate(store, 240_000, 4)
        yield store


def same(client: Client) -> int:
    """How many rows both ways agree on."""
    rolled, counted = client.query(ROLLED_UP).result_rows, client.query(COUNTED).result_rows
    assert rolled == counted
    return len(counted)


def test_it_is_what_the_executions_add_up_to(fleet: Client) -> None:
    assert same(fleet) == 4 * 50 * 4
    fleet.command("OPTIMIZE TABLE cell_graphs FINAL")
    assert same(fleet) == 4 * 50 * 4


def test_late_lost_repeated_and_bare_executions(clickhouse: Client) -> None:
    fooled = believing({"decode": (13, 4), "P128": (34.5, 10)})
    insert(clickhouse, [round_of(5, 31_000, "decode", 13, **fooled), round_of(9, 59_999, "P128", 28, cell_id="b")])
    insert(clickhouse, [round_of(1, 1000, "decode", 13, batch_lanes=None, batch_tokens_emitted=None)])
    insert(clickhouse, [round_of(3, 30_500, "decode", 0, wall_ms=0, scheduler_cost_model="", **fooled)])
    late = [row_of(round_of(2, 1500, "decode", 13, **fooled), ENGINE)]
    for _ in range(2):
        clickhouse.insert(
            "new_executions",
            late,
            column_names=list(EXECUTION_COLUMNS),
            settings={"insert_deduplication_token": "late", "deduplicate_blocks_in_dependent_materialized_views": 1},
        )
    assert same(clickhouse) == 3
    assert clickhouse.query("SELECT sum(executions) FROM cell_graphs").first_row == (5,)


def test_candidates_without_their_figures_do_not_stop_an_insert(clickhouse: Client) -> None:
    """The door refuses such arrays; another writer may not."""
    one = round_of(0, 0, "decode", 13, **believing({"decode": (0, 0), "P128": (34.5, 10)}))
    uneven = one._replace(
        graph_sequence=1, scheduler_candidate_estimates_ns=(), scheduler_candidate_expected_tokens=(1.0,)
    )
    insert(clickhouse, [one, uneven])
    assert same(clickhouse) == 1
    assert ask(clickhouse, "cells")[0]["has_speculative"]


@pytest.mark.parametrize(
    ("lanes", "promised", "speculates"),
    [(4, 4.0, False), (4, 4.5, True), (None, 0.0, False), (None, 4.0, False), (None, 4.5, True)],
)
def test_a_graph_never_executed_is_speculative_where_it_promises_more_than_a_token_a_lane(
    clickhouse: Client, lanes: int | None, promised: float, *, speculates: bool
) -> None:
    """Plain decode, which was chosen, promises 4: so many lanes there are, whether anybody says so or not."""
    believed = believing({"decode": (13, 4.0), "other": (34.5, promised)})
    insert(clickhouse, [round_of(n, 13 * n, "decode", 13, batch_lanes=lanes, **believed) for n in range(3)])
    for name in ("cells", "live_cells"):
        (row,) = ask(clickhouse, name, minimum_decoding_s=0)
        assert (row["has_speculative"], row["stuck"]) == (speculates, speculates), name


@pytest.mark.parametrize("lanes", [4, None])
def test_tokens_that_nobody_recorded_promise_anything(clickhouse: Client, lanes: int | None) -> None:
    believed = believing({"decode": (13, 4.0), "other": (34.5, 10)}) | {"scheduler_candidate_expected_tokens": ()}
    insert(clickhouse, [round_of(0, 0, "decode", 13, batch_lanes=lanes, **believed)])
    assert ask(clickhouse, "cells")[0]["has_speculative"]


def everything_read(root: Path) -> Path:
    """The catalogue with plans that clear no cell."""
    shutil.copytree(SQL_ROOT, root)
    for plan in ("turned_cells", "charged_cells", "stuck_or_turned_cells"):
        path = root / "parts" / f"{plan}.sql"
        head, body = path.read_text().split("WHERE ", 1)
        parameters = [line for line in head.splitlines() if line.startswith("-- parameter")]
        uses = " AND ".join(f"{{{line.split()[2][:-1]}:Float64}} >= 0" for line in parameters)
        assert "level > 1" in body
        path.write_text(f"{head}WHERE {uses}\n".replace(", stuck_cells", ""))
    return root


@pytest.mark.parametrize("name", ["cells", "stuck_plain", "estimate_inflation", "turned_decisions"])
def test_cells_that_the_bounds_clear_had_nothing_to_find(fleet: Client, tmp_path: Path, name: str) -> None:
    values: dict[str, Any] = {"last_s": 0, "limit": 100_000}
    query = load(everything_read(tmp_path / "sql"))[name]
    unpruned = fleet.query(query.sql, parameters=bound(query, values))
    rows = list(unpruned.named_results())
    assert rows, name
    # Sums of floats depend on the order of the rows.
    found = ask(fleet, name, **values)
    assert len(found) == len(rows)
    for row, golden in zip(found, rows, strict=True):
        assert golden == picked(row, golden)
