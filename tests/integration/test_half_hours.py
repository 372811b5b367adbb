"""Questions of a day read settled half hours, and say what the windows say: at edges, of cells that reach over them, and of what comes late."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from clickhouse_connect.driver.client import Client

from collector.judging.judging import settle_hours
from engine_hooks.contract.execution import EngineResource, GraphExecution
from queries.catalogue import find
from tests.fixtures.asking import START, ask
from tests.fixtures.query_rows import ENGINE, believing, insert, round_of

OTHER = EngineResource(
    "engine-2", service_name="llm-engine", host_name="node-1", engine_package="next", engine_recipe="c32"
)
ALONE = EngineResource(
    "engine-3", service_name="llm-engine", host_name="node-2", engine_package="main", engine_recipe="c64"
)
HALF_HOUR_MS = 1_800_000
HALF_HOURS = 5
EVERY_MS = 20_000
PROMISING = believing({"decode": (13, 4), "P128": (28, 10)})
ASKED: list[tuple[str, dict[str, Any]]] = [
    *((name, {"from": START + timedelta(seconds=2000)}) for name in ("engines", "clock_skew", "fleet_stretches")),
    ("engines", {"from": START, "to": START + timedelta(seconds=5400)}),
    ("engines", {"last_s": 0, "arm": "after"}),
    ("clock_skew", {"from": START, "off_above_s": 0, "recipe": "c32"}),
    ("fleet_stretches", {"from": START, "stretch_s": 3600, "to": START + timedelta(seconds=7200)}),
    ("fleet_stretches", {"from": START, "stretch_s": 600}),
    ("fleet_stretches", {"from": START, "stuck_above": 0.1, "package": "next"}),
]  # fmt: skip


def fleet() -> list[tuple[EngineResource, list[GraphExecution]]]:
    """Two and a half hours, no two rounds alike: an engine that marks cells, some over half hours; one that decodes plainly; and one that could do better."""
    steps = range(HALF_HOURS * HALF_HOUR_MS // EVERY_MS)
    marked = [
        round_of(n, n * EVERY_MS, "decode" if n % 5 < 2 else "P128", 28, wall_ms=4000 + n, cell_arm="before" if n < 100 else "after",
                 cell_id=f"long-{n // 40}", cell_concurrency=4, cell_position=n // 40)
        for n in steps
    ]  # fmt: skip
    plain = [round_of(n, n * EVERY_MS + 7, "decode", 13, wall_ms=5000 + n) for n in steps]
    promising = [round_of(n, n * EVERY_MS + 9, "decode", 13, wall_ms=5000 + n, **PROMISING) for n in steps if n % 3]
    return [(ENGINE, marked), (OTHER, plain), (ALONE, promising)]


def store(client: Client, keep: Callable[[EngineResource, GraphExecution], bool] = lambda *_: True) -> None:
    for engine, executions in fleet():
        insert(client, [one for one in executions if keep(engine, one)], engine)


def settle(client: Client) -> None:
    settle_hours(client, START, START + timedelta(hours=3), every_s=0)


def told(client: Client) -> list[list[dict[str, Any]]]:
    return [ask(client, name, **values) for name, values in ASKED]


def told_by_windows(client: Client) -> list[list[dict[str, Any]]]:
    """With nothing settled."""
    client.command("RENAME TABLE engine_half_hours TO set_aside")
    client.command("CREATE TABLE engine_half_hours AS set_aside")
    answers = told(client)
    client.command("DROP TABLE engine_half_hours")
    client.command("RENAME TABLE set_aside TO engine_half_hours")
    return answers


def agree(client: Client) -> None:
    for (name, values), one, other in zip(ASKED, told(client), told_by_windows(client), strict=True):
        assert other, (name, values)
        assert one == [{column: pytest.approx(value) if isinstance(value, float) else value for column, value in row.items()} for row in other], (name, values)  # fmt: skip
    assert ask(client, "rollup_differences", **{"from": START}) == []


def test_settled_half_hours_say_what_their_windows_say(clickhouse: Client) -> None:
    store(clickhouse)
    settle(clickhouse)
    agree(clickhouse)
    assert clickhouse.command("SELECT uniqExact(half_hour_started_at) FROM engine_half_hours") == HALF_HOURS


def test_what_comes_late_counts_at_once_and_is_settled_anew(clickhouse: Client) -> None:
    store(clickhouse, lambda _, one: one.graph_sequence % 7 > 0)
    settle(clickhouse)
    agree(clickhouse)
    store(clickhouse, lambda engine, one: one.graph_sequence % 7 == 0 and engine is not ALONE)
    agree(clickhouse)
    settle(clickhouse)
    clickhouse.command("OPTIMIZE TABLE engine_half_hours FINAL")
    clickhouse.command("OPTIMIZE TABLE cell_windows FINAL")
    agree(clickhouse)


def test_a_cell_that_reaches_over_an_edge_only_later_is_one_cell(clickhouse: Client) -> None:
    """Settled as one within its half hour, and then its second half arrives."""
    edge = HALF_HOUR_MS // EVERY_MS
    store(
        clickhouse,
        lambda engine, one: engine is not ENGINE or one.graph_sequence < edge or one.graph_sequence >= edge + 30,
    )
    settle(clickhouse)
    agree(clickhouse)
    store(clickhouse, lambda engine, one: engine is ENGINE and edge <= one.graph_sequence < edge + 30)
    agree(clickhouse)
    settle(clickhouse)
    agree(clickhouse)


def test_windows_that_expired_before_their_half_hour_are_not_told(clickhouse: Client) -> None:
    store(clickhouse)
    settle(clickhouse)
    clickhouse.command(
        "ALTER TABLE cell_windows DELETE WHERE window_started_at < '2026-11-01 00:45:00' SETTINGS mutations_sync = 1"
    )
    for one, other in zip(told(clickhouse), told_by_windows(clickhouse), strict=True):
        assert one == other


def test_executions_that_expired_leave_what_was_settled(clickhouse: Client) -> None:
    store(clickhouse)
    settle(clickhouse)
    before = told(clickhouse)
    clickhouse.command("TRUNCATE TABLE graph_executions")
    assert told(clickhouse) == before


def test_settled_half_hours_are_what_is_read(clickhouse: Client) -> None:
    """A question of a day without its windows: those of the first hour are spoilt where nobody counts."""
    store(clickhouse)
    settle(clickhouse)
    before = [ask(clickhouse, name, **{"from": START}) for name in ("engines", "clock_skew", "fleet_stretches")]
    clickhouse.command(
        "ALTER TABLE cell_windows UPDATE last_ended_at = toDateTime64(0, 9, 'UTC'), tokens_emitted = 0, graphs = [], speculative_graphs = []"
        " WHERE window_started_at < '2026-11-01 01:00:00' SETTINGS mutations_sync = 1"
    )
    assert [ask(clickhouse, name, **{"from": START}) for name in ("engines", "clock_skew", "fleet_stretches")] == before


def test_a_half_hour_that_is_off_is_found(clickhouse: Client) -> None:
    store(clickhouse)
    settle(clickhouse)
    clickhouse.command(
        "ALTER TABLE engine_half_hours UPDATE cells_tokens = cells_tokens + 1 WHERE reaching_cell = '' SETTINGS mutations_sync = 1"
    )
    found = ask(clickhouse, "rollup_differences", **{"from": START})
    assert {(row["rollup"], *row["differing"]) for row in found} == {("engine_half_hours", "tokens")}
    assert len(found) == 3 * HALF_HOURS


def test_half_hours_are_settled_by_the_bounds_that_count_as_stuck() -> None:
    """Written in the collector's statement and in the question; its defaults are the catalogue's."""
    default = {one.name: one.default for one in find("fleet_stretches").parameters}
    settled = (Path(__file__).parents[2] / "collector/judging/settle_half_hours.sql").read_text()
    asked_for = find("fleet_stretches").sql
    bounds = (default["minimum_decoding_s"], default["stuck_above"])
    assert f">= {bounds[0]}e9 AND plain_ns > {bounds[1]} * (plain_ns + speculative_ns) AS is_plain" in settled
    assert (
        asked_for.count(f"{{stuck_above:Float64}} = {bounds[1]} AND {{minimum_decoding_s:Float64}} = {bounds[0]}") == 2
    )
