"""What a speculative graph costs with the draft executions before it, on the real engine: judged live, and by alerts' queries."""

from collections.abc import Iterable

import pytest
from clickhouse_connect.driver.client import Client

from collector.judging.judging import judge_cells
from engine_hooks.contract.execution import GraphExecution
from engine_hooks.contract.names import FeedbackReason, GraphKind
from tests.fixtures.asking import ask
from tests.fixtures.drafting_engine import MS, Charging, DraftingEngine
from tests.fixtures.query_rows import believing, insert, round_of

CELL = "drafting"
SINCE = {"from": "2026-10-31"}


def mixed(now_ns: int) -> float:
    """0.9, and 0.5 from 20 s on."""
    return 0.9 if now_ns < 20e9 else 0.5


def in_cell(executions: Iterable[GraphExecution]) -> list[GraphExecution]:
    return [one._replace(cell_id=CELL) for one in executions]


def test_what_is_charged_for_drafts_is_no_inflation(clickhouse: Client) -> None:
    """P64 is charged 43.1 ms: 29 of its own, 14 of its drafts. By its own alone it would seem charged half as much again."""
    own = Charging((int(20.1 * MS), int(43.1 * MS)), lambda now_ns: mixed(now_ns - int(1e9)))
    insert(clickhouse, in_cell(DraftingEngine(own, mixed).run(60)))
    (stuck,) = ask(clickhouse, "stuck_plain", **SINCE)
    assert (stuck["cell"], stuck["inflated"], stuck["turned_s"]) == (CELL, False, 0)
    assert stuck["gain_percent"] == pytest.approx(100 * (30 / 43 / (16 / 20) - 1), abs=1)
    assert ask(clickhouse, "estimate_inflation", **SINCE) == []
    assert ask(clickhouse, "turned_decisions", **SINCE) == []
    (engine,) = ask(clickhouse, "overcharged_engines", **SINCE)
    assert (engine["graph"], engine["turned_s"]) == ("", 0)
    assert judge_cells(clickhouse, recent_s=10**9) > 0
    (live,) = ask(clickhouse, "live_stuck", **SINCE)
    assert live["gain_percent"] == pytest.approx(stuck["gain_percent"])
    assert not live["inflated"]
    (engine,) = ask(clickhouse, "live_overcharged", **SINCE)
    assert (engine["graph"], engine["turned_s"]) == ("", 0)


def drafting_rounds(charged_ms: float) -> list[GraphExecution]:
    """Each 30 ms on the GPU and two drafts of 5 ms, before which the device idles 2 ms; then plain decode."""
    believed = believing({"decode": (13, 4), "P128": (charged_ms, 10)})
    draft = {"graph_kind": GraphKind.DRAFT}
    rounds, at_ms = [], 0.0
    for n in range(20):
        rounds += [
            round_of(3 * n, at_ms, "drafter", 5, wall_ms=7, **draft),
            round_of(3 * n + 1, at_ms + 7, "drafter", 5, **draft),
            round_of(3 * n + 2, at_ms + 12, "P128", 30, **believed),
        ]
        at_ms += 42
    # A draft before plain decode is no speculative round's.
    rounds.append(round_of(60, at_ms, "drafter", 5, **draft))
    rounds += [round_of(61 + n, at_ms + 5 + 13 * n, "decode", 13, **believed) for n in range(400)]
    return in_cell(rounds)


def test_what_a_round_costs_with_its_drafts(clickhouse: Client) -> None:
    insert(clickhouse, drafting_rounds(charged_ms=63))
    (row,) = ask(clickhouse, "estimate_inflation", **SINCE)
    assert (row["graph"], row["cost_ns"], row["gpu_time_median_ns"]) == ("P128", 42 * MS, 30 * MS)
    assert row["ratio_max"] == pytest.approx(1.5)


def test_what_a_round_costs_with_drafts_that_wait_for_results(clickhouse: Client) -> None:
    """A grammar makes every round wait for 2 ms, before its drafts."""
    waits = {"graph_completion_feedback": True, "graph_completion_feedback_reason": FeedbackReason.GRAMMAR}
    rounds = [
        one._replace(**(waits if one.graph_kind is not GraphKind.DRAFT else {"graph_queue_depth": n % 3}))
        for n, one in enumerate(drafting_rounds(charged_ms=63))
    ]
    insert(clickhouse, rounds)
    assert [row["cost_ns"] for row in ask(clickhouse, "estimate_inflation", **SINCE)] == [42 * MS]
