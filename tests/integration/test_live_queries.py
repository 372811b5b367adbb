"""Live questions: the rollups say what the executions say, and what was judged is what judging again gives."""

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from clickhouse_connect.driver.client import Client

from collector.judging.judging import CellJudge, judge_cells, settle_hours
from collector.store.client import StoreClient
from engine_hooks.contract.execution import GraphExecution
from engine_hooks.contract.span import EXECUTION_COLUMNS
from queries.judging import statement
from queries.runner import asked
from tests.fixtures.asking import CELL, START, ask
from tests.fixtures.query_rows import ENGINE, believing, insert, round_of, row_of

ROOT = Path(__file__).parents[2]
EVERYTHING = {"last_s": 0}
AGES_S = 400 * 86_400
FOOLED = believing({"decode": (13, 4), "P128": (34.5, 10)})
CALM = believing({"decode": (13, 4), "P128": (28, 8)})
EXACT = {
    "live_cells": "cells",
    "live_stuck": "stuck_plain",
    "live_inflation": "estimate_inflation",
    "live_overcharged": "overcharged_engines",
}
OF_JUDGEMENT = {"judged", "judged_at", "whole"}


def fooled_cell(first: int, rounds: int = 400) -> list[GraphExecution]:
    """P128 measured, then charged too much for the rest: plain decode."""
    measured = [round_of(first + n, (first + n) * 30, "P128", 28, **FOOLED) for n in range(8)]
    return measured + [round_of(first + n, (first + n) * 30, "decode", 13, **FOOLED) for n in range(8, rounds)]


def differences(client: Client) -> list[dict[str, Any]]:
    return ask(client, "rollup_differences", **{"from": "2026-01-01"})


def agree(client: Client, **values: Any) -> None:
    """Every live query tells what its exact one does."""
    for live, exact in EXACT.items():
        told, judged = ask(client, live, **EVERYTHING, **values), ask(client, exact, **EVERYTHING, **values)
        assert judged
        approximately = [
            {name: pytest.approx(value) if isinstance(value, float) else value for name, value in row.items()}
            for row in judged
        ]
        assert [{name: row[name] for name in row if name not in OF_JUDGEMENT} for row in told] == approximately
        assert all(row["judged"] for row in told)
        for one in ("arm", "cell", "host", "package", "recipe", "service_instance_id"):
            absent = {"from": START, one: "absent"}
            assert ask(client, live, **absent) == ask(client, exact, **absent) == []


def test_the_collectors_statement_is_the_catalogues() -> None:
    written = (ROOT / "collector/judging/judge_cells.sql").read_text()
    assert written == statement(), "run: python -m queries.judging > collector/judging/judge_cells.sql"


def test_judged_cells_are_told_as_judging_tells_them(clickhouse: Client) -> None:
    insert(clickhouse, fooled_cell(0))
    (before,) = ask(clickhouse, "live_cells", **EVERYTHING)
    assert (before["stuck"], before["inflated"], before["judged"], before["judged_at"]) == (True, False, False, None)
    assert judge_cells(clickhouse, AGES_S) == 1
    agree(clickhouse)
    assert judge_cells(clickhouse, AGES_S) == 0


def test_an_overcharge_is_told_of_the_cell_that_it_turned_most_in(clickhouse: Client) -> None:
    """The next cell goes on overcharging, and as yet hardly suffers: the alert is not about that one."""
    sick, next_cell = fooled_cell(0), fooled_cell(1000, 40)
    insert(clickhouse, sick + next_cell)
    judge_cells(clickhouse, AGES_S)
    agree(clickhouse)
    (told,) = ask(clickhouse, "live_overcharged", **EVERYTHING)
    assert told["cell"] == CELL
    by_cell = {row["cell"]: row["turned_s"] for row in ask(clickhouse, "live_inflation", **EVERYTHING)}
    assert len(by_cell) == 2
    assert told["turned_s"] == pytest.approx(sum(by_cell.values()))


def test_late_repeated_and_lost_executions_correct_rollups_and_verdicts(clickhouse: Client) -> None:
    whole = fooled_cell(0)
    insert(clickhouse, [one for one in whole if one.graph_sequence % 7])
    judge_cells(clickhouse, AGES_S)
    late = [row_of(one, ENGINE) for one in whole if one.graph_sequence % 7 == 0 and one.graph_sequence != 350]
    token = {"insert_deduplication_token": "late", "deduplicate_blocks_in_dependent_materialized_views": 1}
    for _ in range(3):
        clickhouse.insert("new_executions", late, column_names=list(EXECUTION_COLUMNS), settings=token)
    assert differences(clickhouse) == []
    (row,) = ask(clickhouse, "live_cells", **EVERYTHING)
    assert (row["executions"], row["executions_lost"], row["judged"]) == (399, 1, False)
    judge_cells(clickhouse, AGES_S)
    agree(clickhouse)
    for table in ("cell_graphs", "cell_windows", "engine_seconds"):
        clickhouse.command(f"OPTIMIZE TABLE {table} FINAL")
    assert differences(clickhouse) == []
    agree(clickhouse)


def test_a_rollup_that_is_off_is_found(clickhouse: Client) -> None:
    insert(clickhouse, fooled_cell(0, 20))
    clickhouse.command("INSERT INTO cell_windows SELECT * REPLACE (1 AS executions) FROM cell_windows")
    clickhouse.command("TRUNCATE TABLE engine_seconds")
    found = {row["rollup"]: row for row in differences(clickhouse)}
    assert set(found) == {"cell_windows", "engine_seconds"}
    assert "executions" in found["cell_windows"]["differing"]
    assert (found["engine_seconds"]["executions_stored"], found["engine_seconds"]["executions_rolled_up"]) == (20, 0)


def test_hours_are_settled_as_the_sketches_add_up(clickhouse: Client) -> None:
    """A graph that slows down, over two hours; then late executions."""
    windows = [
        round_of(36 * w + n, 30_000 * w + 800 * n, "P128", 28 + w // 100, wall_ms=50)
        for w in range(130)
        for n in range(36)
    ]
    insert(clickhouse, [one for one in windows if one.graph_sequence % 3])
    newest = ask(clickhouse, "engines", **EVERYTHING)[0]["last_received_at"]
    at = {"at": newest + timedelta(seconds=150), "lookback_s": 86_400}
    (before,) = ask(clickhouse, "live_regressed", **at)
    assert (before["graph_name"], before["windows_now"]) == ("", 0)
    judge_cells(clickhouse, AGES_S)
    same_of_the_settled(clickhouse, at)
    insert(clickhouse, [one for one in windows if not one.graph_sequence % 3])
    assert differences(clickhouse) == []
    settle_hours(clickhouse, START, START + timedelta(hours=2), every_s=0)
    newest = ask(clickhouse, "engines", **EVERYTHING)[0]["last_received_at"]
    same_of_the_settled(clickhouse, {"at": newest + timedelta(seconds=150), "lookback_s": 86_400})
    assert differences(clickhouse) == []
    clickhouse.command(
        "ALTER TABLE graph_hours UPDATE gpu_times_ns = arrayMap(t -> t + 1, gpu_times_ns) WHERE 1 SETTINGS mutations_sync = 1"
    )
    assert {(row["rollup"], *row["differing"]) for row in differences(clickhouse)} == {("graph_hours", "GPU time")}


@pytest.mark.parametrize(("small_until", "slowed"), [(29, None), (15, 34 / 31 - 1)])
def test_what_looks_slower_is_left_to_the_executions(
    clickhouse: Client, small_until: int, slowed: float | None
) -> None:
    """The hours know no batch: 34 ms at 24 lanes after 31 at 8 may be the batch, and are not where 24 took 31 as well."""
    windows = [
        round_of(
            36 * w + n, 30_000 * w + 800 * n, "P128", 31 if w < 29 else 34, batch_lanes=8 if w < small_until else 24
        )
        for w in range(40)
        for n in range(36)
    ]
    insert(clickhouse, windows)
    newest = ask(clickhouse, "engines", **EVERYTHING)[0]["last_received_at"]
    at = {"at": newest + timedelta(seconds=150), "lookback_s": 86_400}
    judge_cells(clickhouse, AGES_S)
    (told,), (exact,) = ask(clickhouse, "live_regressed", **at), ask(clickhouse, "regressed_graphs", **at)
    assert (told["slowed_fraction"] > 0.02, told["judged"]) == (True, False)
    assert exact["slowed_fraction"] == (pytest.approx(slowed, abs=0.02) if slowed else None)


def same_of_the_settled(client: Client, at: dict[str, Any]) -> None:
    told, exact = ask(client, "live_regressed", **at), ask(client, "regressed_graphs", **at)
    assert exact
    assert [{**row, "judged": True} for row in exact] == told
    hour = {"last_s": 600, "history_s": 86_400}
    told, exact = ask(client, "live_drift", **hour), ask(client, "gpu_time_drift", **hour)
    assert exact[0]["executions_before"]
    assert told == exact


def test_one_who_judges_looks_at_everything_first(clickhouse: Client) -> None:
    insert(clickhouse, fooled_cell(0, 20))
    judge = CellJudge(StoreClient(lambda: clickhouse), clock=lambda: 0.0)
    assert judge.look(clickhouse) == 1
    assert judge.look(clickhouse) == 0


def test_a_cell_that_becomes_stuck_is_judged_by_the_next_look_whatever_else_waits(clickhouse: Client) -> None:
    """Older cells come after it, an hour by a statement: two statements a look."""
    hours = [round_of(n, n * 1_800_000, "P128", 28, **FOOLED) for n in range(12)]
    insert(clickhouse, hours)
    judge = CellJudge(StoreClient(lambda: clickhouse), clock=lambda: 0.0)
    assert judge.look(clickhouse) == 2
    now_ms = 12 * 1_800_000
    insert(clickhouse, [round_of(12 + n, now_ms + n * 30, "P128", 28, **FOOLED) for n in range(8)])
    judge.look(clickhouse)
    assert ask(clickhouse, "live_stuck", **EVERYTHING) == []
    insert(clickhouse, [round_of(20 + n, now_ms + (8 + n) * 30, "decode", 13, **FOOLED) for n in range(400)])
    judge.look(clickhouse)
    (stuck,) = ask(clickhouse, "live_stuck", **EVERYTHING)
    assert (stuck["judged"], stuck["inflated"]) == (True, True)
    while judge.look(clickhouse):
        pass
    assert all(row["judged"] for row in ask(clickhouse, "live_cells", **EVERYTHING))


def test_a_cell_is_whole_once_it_ended_and_was_judged_after_that(clickhouse: Client) -> None:
    """A verdict on the first executions of a running cell says nothing of those that follow."""

    def told() -> tuple[bool, bool, bool]:
        (row,) = [row for row in ask(clickhouse, "live_stuck", **EVERYTHING) if row["cell"] == CELL]
        return row["inflated"], row["judged"], row["whole"]

    measured = [round_of(n, n * 30, "P128", 28, **CALM) for n in range(8)]
    insert(clickhouse, measured + [round_of(8 + n, 240 + n * 30, "decode", 13, **CALM) for n in range(300)])
    assert told() == (False, False, False)
    judge_cells(clickhouse, AGES_S)
    assert told() == (False, True, False)
    insert(clickhouse, [round_of(308 + n, 9_240 + n * 30, "decode", 13, **FOOLED) for n in range(400)])
    assert told() == (False, False, False)
    judge_cells(clickhouse, AGES_S)
    assert told() == (True, True, False)
    insert(clickhouse, [round_of(708, 31_000, "decode", 13, **FOOLED)])
    assert told() == (True, True, True)


def test_nothing_is_denied_of_a_stuck_cell_whose_graphs_were_not_measured(clickhouse: Client) -> None:
    insert(clickhouse, [round_of(n, n * 30, "decode", 13, **FOOLED) for n in range(1100)])
    judge_cells(clickhouse, AGES_S)
    assert {(row["judged"], row["whole"]) for row in ask(clickhouse, "live_stuck", **EVERYTHING)} == {(True, False)}


def test_second_by_second(clickhouse: Client) -> None:
    insert(clickhouse, [round_of(n, n * 250, "decode" if n < 4 else "P128", 100) for n in range(8)])
    (first, second) = ask(clickhouse, "live_seconds", **{"from": "2026-11-01"})
    assert (first["executions"], first["plain_s"], first["speculative_s"]) == (4, pytest.approx(0.4), 0)
    assert (second["executions"], second["plain_s"], second["speculative_s"]) == (4, 0, pytest.approx(0.4))
    assert first["batch_tokens_emitted"] == round(first["tokens_per_wall_s"] * 0.4)
    (both,) = ask(clickhouse, "live_seconds", step_s=2, **{"from": "2026-11-01"})
    assert (both["executions"], both["step_started_at"]) == (8, first["step_started_at"])
    assert ask(clickhouse, "live_seconds", host="another", **{"from": "2026-11-01"}) == []


LIVE = {
    "live_cells": {"from": "2026-11-01"},
    "live_stuck": {"from": "2026-11-01"},
    "live_inflation": {"from": "2026-11-01"},
    "live_overcharged": {"from": "2026-11-01"},
    "stuck_engines": {},
    "silent_engines": {},
    "skewed_clocks": {},
    "lost_executions": {},
}


OF_A_DAY = ("fleet_stretches", "engines", "clock_skew")


@pytest.mark.parametrize("name", LIVE)
def test_live_questions_read_narrow_rollups_alone(clickhouse: Client, name: str) -> None:
    """What makes them cost the same however much is stored; held here by what is read, not by how long it takes."""
    assert tables_read(clickhouse, name, LIVE[name]) == {"cell_windows"}


@pytest.mark.parametrize("name", OF_A_DAY)
def test_questions_of_a_day_read_narrow_rollups_alone(clickhouse: Client, name: str) -> None:
    assert tables_read(clickhouse, name, {"from": "2026-11-01"}) == {"cell_windows", "engine_half_hours"}


def tables_read(client: Client, name: str, values: dict[str, Any]) -> set[str]:
    sql, parameters = asked(name, values)
    tree = "\n".join(row[0] for row in client.query(f"EXPLAIN QUERY TREE {sql}", parameters=parameters).result_rows)
    return set(re.findall(r"table_name: \w+\.(\w+)", tree)) - {"one"}


def test_the_newest_half_hour_is_found_without_the_rest(clickhouse: Client) -> None:
    """By the order of the table: granules of other times are not read."""
    clickhouse.command(
        "INSERT INTO cell_windows (received_on, window_started_at, service_instance_id, cell) SELECT '2026-11-01',"
        " toDateTime('2026-11-01 00:00:00', 'UTC') + intDiv(number, 50) * 30, concat('engine-', toString(number % 50)), '' FROM numbers(100000)"
    )
    sql, parameters = asked("live_cells", {"from": "2026-11-01 16:00:00", "history_s": 0})
    plan = [row[0].strip() for row in clickhouse.query(f"EXPLAIN indexes = 1 {sql}", parameters=parameters).result_rows]
    granules = [
        line.removeprefix("Granules: ").split("/") for line in plan if line.startswith("Granules: ") and "/" in line
    ]
    assert int(granules[0][1]) > 90
    assert int(granules[-1][0]) <= 8
