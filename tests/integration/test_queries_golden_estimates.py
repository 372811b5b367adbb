"""Estimates and decisions on the real engine: tiny rows in, figures worked out by hand out."""

from datetime import timedelta
from itertools import pairwise

import pytest
from clickhouse_connect.driver.client import Client

from engine_hooks.contract.execution import GraphExecution
from engine_hooks.contract.names import FeedbackReason, Purpose
from engine_hooks.simulator.scenarios import SCENARIOS
from queries.known_by_then import knowledge_of
from tests.fixtures.asking import CELL, START, ask, moment, picked
from tests.fixtures.looping_engine import LoopingEngine
from tests.fixtures.query_rows import ENGINE, MS, believing, insert, round_of
from tests.fixtures.replayed_cells import live

FAIR = believing({"decode": (13, 4), "P128": (29, 10)})
FOOLED = believing({"decode": (13, 4), "P128": (34.5, 10)})


def test_estimate_moves(clickhouse: Client) -> None:
    insert(
        clickhouse,
        [
            round_of(0, 0, "P128", 28, **FAIR),
            round_of(1, 30, "P128", 28.5, wall_ms=61, graph_queue_depth=0, **FAIR),
            round_of(2, 95, "decode", 13, **FOOLED),
            round_of(3, 110, "decode", 13),
            round_of(4, 125, "decode", 13, **FOOLED),
            round_of(5, 140, "decode", 13, **FAIR),
        ],
    )
    raised = {
        "cell": CELL,
        "started_at": moment(95),
        "graph_sequence": 2,
        "graph": "P128",
        "estimate_before_ns": 29 * MS,
        "estimate_after_ns": int(34.5 * MS),
        "estimate_change_percent": 100 * (34.5 / 29 - 1),
        "moved_by_sequence": 1,
        "moved_by_purpose": "ordinary",
        "moved_by_gpu_time_ns": int(28.5 * MS),
        "moved_by_wall_time_ns": 61 * MS,
        "moved_by_queue_depth": 0,
    }
    expired = {
        "started_at": moment(140),
        "estimate_before_ns": int(34.5 * MS),
        "estimate_after_ns": 29 * MS,
        "moved_by_sequence": None,
        "moved_by_wall_time_ns": None,
        "moved_by_span_id": "",
    }
    first, second = ask(clickhouse, "estimate_moves")
    assert raised == picked(first, raised)
    assert len(first["moved_by_span_id"]) == 16
    assert expired == picked(second, expired), "no execution of the graph ended between the two decisions"
    assert len(ask(clickhouse, "estimate_moves", moved_above=0.17)) == 1
    assert ask(clickhouse, "estimate_moves", graph="decode") == []


def test_decision_margins(clickhouse: Client) -> None:
    near = believing({"decode": (13, 4), "P128": (32.6, 10), "P64": (50, 1)})
    insert(
        clickhouse,
        [
            round_of(0, 0, "decode", 13, **near),
            round_of(1, 13, "decode", 13, **FOOLED),
            round_of(2, 26, "P128", 28, **FOOLED),
            round_of(3, 54, "P128", 28, graph_purpose=Purpose.REFRESH, **FOOLED),
            round_of(4, 82, "decode", 13, **believing({"decode": (13, 4)})),
        ],
    )
    margin = 100 * (4 / 13 / (10 / 34.5) - 1)
    decode = {
        "graph_name": "decode",
        "next_best_graph": "P128",
        "decisions": 2,
        "near_ties": 1,
        "near_tie_fraction": 0.5,
        "against_estimates": 0,
        "margin_median_percent": margin,
        "margin_p10_percent": 100 * (4 / 13 / (10 / 32.6) - 1),
        "margin_p90_percent": margin,
    }
    against = {
        "graph_name": "P128",
        "next_best_graph": "decode",
        "decisions": 1,
        "near_ties": 0,
        "against_estimates": 1,
        "margin_median_percent": 100 * (10 / 34.5 / (4 / 13) - 1),
    }
    first, second = ask(clickhouse, "decision_margins")
    assert decode == picked(first, decode)
    assert against == picked(second, against)
    assert ask(clickhouse, "decision_margins", near_tie_percent=7)[0]["near_ties"] == 2


def test_turned_decisions(clickhouse: Client) -> None:
    insert(
        clickhouse,
        [
            *(round_of(n, 28 * n, "P128", 28, **believing({"decode": (13, 4), "P128": (28, 10)})) for n in range(5)),
            round_of(5, 140, "decode", 13, **FOOLED),
            round_of(6, 153, "P128", 28, graph_purpose=Purpose.ACCEPTANCE_PROBE, **FOOLED),
        ],
    )
    golden = {
        "cell": CELL,
        "graph_sequence": 5,
        "started_at": moment(140),
        "graph_name": "decode",
        "better_graph": "P128",
        "better_estimate_ns": int(34.5 * MS),
        "better_cost_ns": 28 * MS,
        "overcharge_ratio": 34.5 / 28,
        "gain_percent": 100 * (10 / 28 * 13 / 4 - 1),
        "graph_wall_time_ns": 13 * MS,
        "tokens_lost": (10 / 28 - 4 / 13) * 13,
    }
    (row,) = ask(clickhouse, "turned_decisions")
    assert golden == picked(row, golden)
    assert ask(clickhouse, "turned_decisions", turned_above=0.2) == []


def test_engines_of_one_window_are_judged_each_by_its_own_costs(clickhouse: Client) -> None:
    """Both are charged 34.5 ms for P128; it takes 28 ms on the one and 30 ms on the other."""
    costs = {"engine-1": 28, "engine-2": 30}
    for name, gpu_ms in costs.items():
        fair = believing({"decode": (13, 4), "P128": (gpu_ms, 10)})
        rounds = [round_of(n, 35 * n, "P128", gpu_ms, **fair) for n in range(5)]
        insert(
            clickhouse, [*rounds, round_of(5, 175, "decode", 13, **FOOLED)], ENGINE._replace(service_instance_id=name)
        )
    turned = ask(clickhouse, "turned_decisions")
    assert [(one["service_instance_id"], one["better_cost_ns"] / MS) for one in turned] == [*costs.items()]
    inflated = ask(clickhouse, "estimate_inflation")
    assert {one["service_instance_id"]: one["cost_ns"] / MS for one in inflated} == costs
    assert [one["decisions_turned"] for one in inflated] == [1, 1]


def test_estimate_history(clickhouse: Client) -> None:
    insert(
        clickhouse,
        [
            round_of(0, 0, "P128", 28, wall_ms=30, **FAIR),
            round_of(1, 30, "decode", 13, **FOOLED),
            round_of(2, 1000, "decode", 14, **FOOLED),
            round_of(3, 1020, "decode", 13),
        ],
    )
    rows = ask(clickhouse, "estimate_history", step_s=1, graph="P128")
    golden = [
        {
            "step_started_at": moment(0),
            "decisions_offered": 2,
            "estimate_step_ns": (29 + 34.5) / 2 * MS,
            "executions": 1,
            "gpu_time_median_ns": 28 * MS,
            "wall_time_median_ns": 30 * MS,
            "estimate_to_wall_time": (29 + 34.5) / 2 / 30,
        },
        {
            "step_started_at": moment(1000),
            "decisions_offered": 1,
            "estimate_step_ns": 34.5 * MS,
            "executions": 0,
            "gpu_time_median_ns": None,
            "wall_time_median_ns": None,
            "estimate_to_wall_time": None,
        },
    ]
    assert golden == [picked(row, golden[0]) for row in rows]
    decode = ask(clickhouse, "estimate_history", step_s=1, graph="decode")[1]
    assert (decode["decisions_offered"], decode["executions"], decode["gpu_time_median_ns"]) == (1, 2, 14 * MS)


def test_handoffs(clickhouse: Client) -> None:
    grammar = {"graph_completion_feedback": True, "graph_completion_feedback_reason": FeedbackReason.GRAMMAR}
    drained = {"graph_queue_depth": 0}
    insert(
        clickhouse,
        [
            round_of(0, 0, "P128", 28, wall_ms=1500, graph_after_idle=True, **drained),
            round_of(1, 2000, "P128", 28, wall_ms=29, **drained),
            round_of(2, 2030, "P128", 28, wall_ms=61, **drained),
            round_of(3, 2100, "P128", 28, wall_ms=30, **drained, **grammar),
            round_of(4, 2130, "P128", 28, wall_ms=31),
            round_of(5, 2170, "P128", 28, wall_ms=32, graph_queue_depth=None),
        ],
    )
    golden = {
        "graph_name": "P128",
        "awaited_reason": "",
        "drained_executions": 2,
        "handoff_median_ns": 33 * MS,
        "handoff_p90_ns": 33 * MS,
        "handoff_max_ns": 33 * MS,
        "handoff_s": 0.034,
    }
    none, waits = ask(clickhouse, "handoffs")
    assert golden == picked(none, golden)
    assert (waits["awaited_reason"], waits["drained_executions"], waits["handoff_max_ns"]) == ("grammar", 1, 2 * MS)


def test_measuring_cost(clickhouse: Client) -> None:
    refresh = {"graph_purpose": Purpose.REFRESH, "batch_tokens_emitted": 0}
    insert(
        clickhouse,
        [
            round_of(0, 0, "decode", 13, wall_ms=900),
            round_of(1, 1000, "P128", 28, wall_ms=30, **refresh),
            round_of(2, 3000, "P128", 28, wall_ms=50, **refresh),
            round_of(3, 4000, "P128", 28, wall_ms=20, graph_purpose=Purpose.ACCEPTANCE_PROBE),
        ],
    )
    golden = {
        "graph_purpose": "refresh",
        "graph_name": "P128",
        "executions": 2,
        "measuring_s": 0.08,
        "measuring_fraction": 0.08,
        "tokens_per_execution": 0.0,
        "period_mean_s": 2.0,
    }
    first, second = ask(clickhouse, "measuring_cost")
    assert golden == picked(first, golden)
    assert (second["graph_purpose"], second["period_mean_s"]) == ("acceptance_probe", None)


def test_acceptance_counts_full_rejections(clickhouse: Client) -> None:
    insert(
        clickhouse,
        [
            round_of(0, 0, "P128", 28, batch_tokens_drafted=12, batch_tokens_accepted=9, scheduler_expected_tokens=9.0),
            round_of(1, 28, "P128", 28, batch_tokens_drafted=12, batch_tokens_accepted=0, batch_tokens_emitted=4),
            round_of(2, 56, "P128", 28, batch_tokens_drafted=12, batch_lanes=None),
            round_of(3, 84, "decode", 13, batch_tokens_drafted=0, batch_tokens_accepted=0),
        ],
    )
    golden = {
        "graph_name": "P128",
        "batch_lanes": 4,
        "executions": 2,
        "executions_all_rejected": 1,
        "batch_tokens_drafted": 24,
        "batch_tokens_accepted": 9,
        "acceptance_fraction": 9 / 24,
        "tokens_per_execution": 7.0,
        "expected_per_execution": 9.0,
        "emitted_to_expected": 10 / 9,
    }
    by_lanes = {row["batch_lanes"]: row for row in ask(clickhouse, "acceptance")}
    assert golden == picked(by_lanes[4], golden)
    assert (by_lanes[None]["executions"], by_lanes[None]["acceptance_fraction"]) == (1, None)


def test_tokens_by_concurrency(clickhouse: Client) -> None:
    for cell, rounds in (("a", 1), ("b", 3)):
        insert(
            clickhouse,
            [round_of(n, 100 * n, "P128", 100, cell_id=cell, cell_concurrency=32) for n in range(rounds)],
            ENGINE._replace(service_instance_id=cell),
        )
    insert(clickhouse, [round_of(0, 0, "P128", 50)])
    golden = {
        "engine_package": "main",
        "cell_concurrency": 32,
        "cells": 2,
        "tokens_per_s_mean": 100.0,
        "tokens_per_s_median": 100.0,
        "tokens_per_s_min": 100.0,
        "cells_stuck": 0,
    }
    by_concurrency = {row["cell_concurrency"]: row for row in ask(clickhouse, "tokens_by_concurrency")}
    assert golden == picked(by_concurrency[32], golden)
    assert by_concurrency[None]["tokens_per_s_max"] == pytest.approx(200)


def test_package_comparison(clickhouse: Client) -> None:
    second = ENGINE._replace(service_instance_id="engine-2", engine_package="next")
    rounds = [round_of(0, 0, "P128", 30), round_of(1, 30, "decode", 10), round_of(3, 40, "decode", 20)]
    insert(clickhouse, rounds)
    insert(clickhouse, [one._replace(started_at=one.started_at + 30_000 * MS) for one in rounds])
    insert(clickhouse, rounds[:1], second)
    golden = {
        "engine_package": "main",
        "cells": 2,
        "cells_stuck": 2,
        "cells_inflated": 0,
        "plain_fraction": 0.5,
        "plain_fraction_by_rounds": 2 / 3,
        "tokens_per_s_mean": 18 / 0.06,
        "tokens_per_s_median": 18 / 0.06,
        "executions_lost": 2,
    }
    main, other = ask(clickhouse, "package_comparison", minimum_decoding_s=0)
    assert golden == picked(main, golden)
    assert (other["engine_package"], other["plain_fraction"], other["cells_stuck"]) == ("next", 0, 0)
    (late,) = ask(clickhouse, "package_comparison", **{"from": START + timedelta(seconds=30)})
    assert late["cells"] == 1


@pytest.mark.parametrize("later_ns", [0, 20_000])
def test_one_timestamp_or_two_the_same_execution_moved_the_estimate(clickhouse: Client, later_ns: int) -> None:
    executions = LoopingEngine("exposed_mean", later_ns=later_ns).run(5)
    insert(clickhouse, executions)
    (stumbled,) = (one for one in executions if one.graph_wall_time_ns > 60 * MS)
    move = ask(clickhouse, "estimate_moves", moved_above=0.01)[0]
    assert move["moved_by_sequence"] == stumbled.graph_sequence
    assert move["graph"] == stumbled.graph_name
    assert move["graph_sequence"] == stumbled.graph_sequence + 1


@pytest.mark.parametrize("model", ["exposed_mean", "drained_share", "idle_gap"])
@pytest.mark.parametrize(
    "engine", ["one timestamp", "pipelined", "host 1.2x on all rounds", "bursts of 20 delays every 20 s"]
)
def test_what_moved_an_estimate_is_what_the_findings_take_for_known(
    clickhouse: Client, engine: str, model: str
) -> None:
    if engine in SCENARIOS:
        executions = live(SCENARIOS[engine], model, seed=3)
    else:
        executions = LoopingEngine(model, in_flight_max=1 + (engine == "pipelined")).run(8)
    insert(clickhouse, executions)
    moves = ask(clickhouse, "estimate_moves", moved_above=0, limit=10**6)
    assert {(move["graph_sequence"], move["graph"]): move["moved_by_sequence"] for move in moves} == newly_known(
        executions
    )


def newly_known(executions: tuple[GraphExecution, ...]) -> dict[tuple[int, str], int | None]:
    """By decision and graph whose estimate changed: its latest execution that was known then, and not before."""
    knows = knowledge_of(executions).has
    found: dict[tuple[int, str], int | None] = {}
    for one, next_ in pairwise(decision for decision in executions if decision.scheduler_candidate_graphs):
        before = dict(zip(one.scheduler_candidate_graphs, one.scheduler_candidate_estimates_ns, strict=True))
        after = dict(zip(next_.scheduler_candidate_graphs, next_.scheduler_candidate_estimates_ns, strict=True))
        since = max(next_.graph_sequence - 60, 0) - executions[0].graph_sequence
        near = executions[max(since, 0) : next_.graph_sequence - executions[0].graph_sequence]
        for graph, now_ns in after.items():
            if now_ns != before.get(graph, now_ns):
                new = [
                    n.graph_sequence for n in near if n.graph_name == graph and knows(next_, n) and not knows(one, n)
                ]
                found[next_.graph_sequence, graph] = new[-1] if new else None
    return found
