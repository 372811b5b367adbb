"""Each query on the real engine: tiny rows in, golden result out."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from clickhouse_connect.driver.client import Client

from collector.judging.judging import judge_cells
from engine_hooks.contract.names import FeedbackReason, GraphKind, Purpose
from queries.catalogue import Query, load
from queries.errors import ParameterError
from tests.fixtures.asking import CELL, START, ask, moment, picked
from tests.fixtures.query_rows import ENGINE, MS, believing, insert, round_of

ANY_LENGTH = {"minimum_decoding_s": 0}


def test_cells(clickhouse: Client) -> None:
    insert(
        clickhouse,
        [
            round_of(0, 0, "P128", 28),
            round_of(1, 28, "decode", 12, wall_ms=14),
            # 2 was lost; a refresh is not the scheduler's choice.
            round_of(3, 42, "P128", 28, graph_purpose=Purpose.REFRESH),
        ],
    )
    golden = {
        "service_instance_id": "engine-1",
        "cell": CELL,
        "host_name": "node-1",
        "engine_package": "main",
        "scheduler_cost_model": "exposed_mean",
        "cell_id": "",
        "cell_concurrency": None,
        "started_at": moment(0),
        "ended_at": moment(70),
        "elapsed_s": 0.07,
        "executions": 3,
        "executions_lost": 1,
        "plain_fraction": 1 / 3,
        "plain_fraction_by_rounds": 0.5,
        "plain_s": 0.014,
        "speculative_s": 0.028,
        "has_speculative": True,
        "stuck": True,
        "inflated": False,
        "turned_s": 0.0,
        "decisions_turned": 0,
        "batch_tokens_emitted": 24,
        "tokens_per_s": 24 / 0.07,
        "gpu_busy_fraction": 68 / 70,
    }
    (row,) = ask(clickhouse, "cells", **ANY_LENGTH)
    assert golden == picked(row, golden)
    assert not ask(clickhouse, "cells")[0]["stuck"], "42 ms of decoding are too few for a verdict"
    assert not ask(clickhouse, "cells", stuck_above=0.34, **ANY_LENGTH)[0]["stuck"]


@pytest.mark.parametrize(
    ("candidates", "has_speculative"),
    [
        ({}, False),
        ({"decode": (13, 4)}, False),
        ({"decode": (13, 4), "decode-16": (15, 4)}, False),
        ({"decode": (13, 4), "P128": (28, 9)}, True),
    ],
    ids=["nothing recorded", "decode only", "another plain graph", "never executed"],
)
def test_only_an_engine_with_a_speculative_graph_can_be_stuck(
    clickhouse: Client, candidates: dict[str, tuple[float, float]], has_speculative: bool
) -> None:
    insert(clickhouse, [round_of(n, 13 * n, "decode", 13, **believing(candidates)) for n in range(4)])
    (row,) = ask(clickhouse, "cells", **ANY_LENGTH)
    assert row["plain_fraction"] == 1
    assert row["has_speculative"] is has_speculative
    assert row["stuck"] is has_speculative
    assert len(ask(clickhouse, "stuck_plain", **ANY_LENGTH)) == has_speculative


def test_a_plain_cell_in_the_middle_of_a_run_is_stuck(clickhouse: Client) -> None:
    second = 30_000
    insert(
        clickhouse,
        [
            round_of(0, 29_900, "P128", 28),
            *(round_of(1 + n, 29_950 + 13 * n, "decode", 13) for n in range(8)),
        ],
    )
    by_window = {"from": START + timedelta(milliseconds=second), **ANY_LENGTH}
    (cell,) = ask(clickhouse, "cells", **by_window)
    assert (cell["cell"], cell["executions"], cell["stuck"]) == (str(int(CELL) + 30), 4, True)
    (stuck,) = ask(clickhouse, "stuck_plain", **by_window)
    golden = {"plain_since": moment(29_950), "plain_stretch_s": 0.104, "plain_fraction": 1.0}
    assert golden == picked(stuck, golden), "the stretch began before the cell"
    assert ask(clickhouse, "stuck_plain", history_s=0, **by_window) == [], "nothing tells of a speculative graph"


def test_a_marked_cell_across_windows_is_summed(clickhouse: Client) -> None:
    marked = {"cell_id": "bench-1"}
    insert(
        clickhouse,
        [
            round_of(0, 29_900, "P128", 28, **marked),
            round_of(1, 29_950, "decode", 13, **marked),
            round_of(2, 30_000, "P128", 27, **marked),
            round_of(4, 30_030, "decode", 15, wall_ms=20, **marked),
        ],
    )
    golden = {
        "cell": "bench-1",
        "started_at": moment(29_900),
        "ended_at": moment(30_050),
        "elapsed_s": 0.15,
        "executions": 4,
        "executions_lost": 1,
        "plain_s": 0.033,
        "speculative_s": 0.055,
        "plain_fraction": 33 / 88,
        "plain_fraction_by_rounds": 0.5,
        "batch_tokens_emitted": 28,
        "gpu_busy_fraction": 83 / 150,
    }
    (row,) = ask(clickhouse, "cells", **ANY_LENGTH)
    assert golden == picked(row, golden)


FOOLED = believing({"decode": (13, 4), "P128": (34.5, 10)})
FAIR = believing({"decode": (13, 4), "P128": (28, 10)})


def fooled_engine() -> list[Any]:
    """Five fair P128 rounds, then plain decode because P128 is charged 34.5 ms for its 28."""
    return [
        *(round_of(n, 28 * n, "P128", 28, scheduler_estimate_ns=28 * MS, **FAIR) for n in range(5)),
        *(round_of(5 + n, 140 + 13 * n, "decode", 13, scheduler_estimate_ns=13 * MS, **FOOLED) for n in range(10)),
        round_of(15, 270, "P128", 28, graph_purpose=Purpose.ACCEPTANCE_PROBE, batch_tokens_emitted=8),
        *(round_of(16 + n, 298 + 13 * n, "decode", 13, scheduler_estimate_ns=13 * MS, **FOOLED) for n in range(2)),
    ]


def test_stuck_plain(clickhouse: Client) -> None:
    insert(clickhouse, fooled_engine())
    golden = {
        "service_instance_id": "engine-1",
        "cell": CELL,
        "host_name": "node-1",
        "started_at": moment(0),
        "ended_at": moment(324),
        "plain_fraction": 156 / 296,
        "plain_s": 0.156,
        "plain_since": moment(140),
        "plain_stretch_s": 0.184,
        "tokens_per_s": 106 / 0.324,
        "plain_tokens_per_s": 4 / 0.013,
        "speculative_tokens_per_s": 10 / 0.028,
        "best_speculative_graph": "P128",
        "gain_percent": 100 * (10 / 28 * 13 / 4 - 1),
        "turned_s": 0.156,
        "inflated": True,
    }
    (row,) = ask(clickhouse, "stuck_plain", inflated_above_s=0.1, **ANY_LENGTH)
    assert golden == picked(row, golden)


def test_estimate_inflation(clickhouse: Client) -> None:
    insert(clickhouse, fooled_engine())
    golden = {
        "service_instance_id": "engine-1",
        "cell": CELL,
        "host_name": "node-1",
        "engine_name": "sim",
        "scheduler_cost_model": "exposed_mean",
        "graph": "P128",
        "cost_ns": 28 * MS,
        "gpu_time_median_ns": 28 * MS,
        "measured_in": "",
        "estimate_mean_ns": (5 * 28 + 12 * 34.5) / 17 * MS,
        "estimate_max_ns": int(34.5 * MS),
        "ratio_mean": (5 * 28 + 12 * 34.5) / 17 / 28,
        "ratio_max": 34.5 / 28,
        "decisions": 17,
        "decisions_overcharged": 12,
        "overcharged_since": moment(140),
        "overcharged_until": moment(311),
        "decisions_turned": 12,
        "turned_s": 0.156,
        "tokens_lost": (10 / 28 - 4 / 13) * 156,
        "inflated": False,
    }
    (row,) = ask(clickhouse, "estimate_inflation")
    assert golden == picked(row, golden)
    assert ask(clickhouse, "cells", inflated_above_s=0.156)[0]["inflated"]


def test_inflation_is_seen_in_a_window_that_never_executed_the_graph(clickhouse: Client) -> None:
    insert(clickhouse, fooled_engine())
    insert(clickhouse, [round_of(20 + n, 30_000 + 13 * n, "decode", 13, **FOOLED) for n in range(3)])
    (row,) = ask(clickhouse, "estimate_inflation", **{"from": START + timedelta(seconds=30)})
    later = str(int(CELL) + 30)
    golden = {"cell": later, "measured_in": CELL, "cost_ns": 28 * MS, "decisions_turned": 3}
    assert golden == picked(row, golden)
    for cell, turned in ((CELL, 12), (later, 3)):
        (alone,) = ask(clickhouse, "estimate_inflation", cell=cell)
        assert (alone["cell"], alone["decisions_turned"]) == (cell, turned)


def test_a_graph_whose_host_is_always_late_is_not_overcharged(clickhouse: Client) -> None:
    late = believing({"decode": (13, 4), "P128": (42, 10)})
    insert(clickhouse, [round_of(n, 42 * n, "P128", 28, wall_ms=42, graph_queue_depth=0, **late) for n in range(6)])
    assert ask(clickhouse, "estimate_inflation") == []
    stumble = [round_of(0, 0, "P128", 28, wall_ms=61, graph_queue_depth=0)]
    rest = [round_of(n, 61 + 28 * n, "P128", 28, **late) for n in range(1, 6)]
    insert(clickhouse, [*stumble, *rest], ENGINE._replace(service_instance_id="engine-2"))
    (row,) = ask(clickhouse, "estimate_inflation")
    assert (row["service_instance_id"], row["cost_ns"], row["decisions_overcharged"]) == ("engine-2", 28 * MS, 5)


def test_graph_costs(clickhouse: Client) -> None:
    waited = {"graph_queue_depth": 0, "wall_ms": 30}
    insert(
        clickhouse,
        [
            round_of(0, 0, "P128", 27, wall_ms=500, graph_after_idle=True, graph_queue_depth=0),
            round_of(1, 30, "P128", 28, scheduler_estimate_ns=30 * MS, **waited),
            round_of(2, 60, "P128", 29, scheduler_estimate_ns=32 * MS),
            round_of(3, 90, "decode", 13, cell_id="bench"),
        ],
    )
    golden = {
        "engine_name": "sim",
        "host_name": "node-1",
        "engine_package": "main",
        "service_instance_id": "",
        "cell": "",
        "graph_name": "P128",
        "graph_kind": "speculative",
        "executions": 3,
        "gpu_time_median_ns": 28 * MS,
        "gpu_time_p10_ns": 27 * MS,
        "gpu_time_p90_ns": 29 * MS,
        "gpu_time_p99_ns": 29 * MS,
        "wall_time_median_ns": 30 * MS,
        "drained_executions": 1,
        "handoff_median_ns": 2 * MS,
        "estimate_mean_ns": 31.0 * MS,
        "estimate_to_gpu_time": 31 / 28,
        "idle_gap_s": 0.002,
        "tokens_per_execution": 10.0,
    }
    decode, speculative = ask(clickhouse, "graph_costs")
    assert golden == picked(speculative, golden)
    assert (decode["graph_name"], decode["handoff_median_ns"]) == ("decode", None)
    by_cell = ask(clickhouse, "graph_costs", by_cell=True)
    assert [(row["service_instance_id"], row["cell"]) for row in by_cell] == [("engine-1", CELL), ("engine-1", "bench")]
    (one,) = ask(clickhouse, "graph_costs", graph="decode", cell="bench")
    assert one["executions"] == 1


def test_executions(clickhouse: Client) -> None:
    grammar = {"graph_completion_feedback": True, "graph_completion_feedback_reason": FeedbackReason.GRAMMAR}
    insert(clickhouse, [round_of(1, 28, "decode", 13), round_of(0, 0, "P128", 28, wall_ms=30, **grammar)])
    golden = {
        "service_instance_id": "engine-1",
        "cell": CELL,
        "graph_sequence": 0,
        "started_at": moment(0),
        "ended_at": moment(30),
        "duration_ns": 30 * MS,
        "graph_name": "P128",
        "graph_kind": "speculative",
        "graph_purpose": "ordinary",
        "graph_gpu_time_ns": 28 * MS,
        "graph_wall_time_ns": 30 * MS,
        "idle_gap_ns": 2 * MS,
        "graph_gpu_start_offset_ns": None,
        "graph_queue_depth": 1,
        "graph_after_idle": False,
        "graph_completion_feedback": True,
        "graph_completion_feedback_reason": "grammar",
        "batch_lanes": 4,
        "batch_tokens_drafted": None,
        "batch_tokens_accepted": None,
        "batch_tokens_emitted": 10,
        "scheduler_estimate_ns": None,
        "scheduler_expected_tokens": None,
    }
    first, second = ask(clickhouse, "executions")
    assert golden == picked(first, golden)
    assert second["graph_sequence"] == 1
    assert len(ask(clickhouse, "executions", limit=1)) == 1


def test_candidates(clickhouse: Client) -> None:
    insert(clickhouse, [round_of(7, 5, "decode", 13, **FOOLED), round_of(8, 18, "decode", 13)])
    common = {"service_instance_id": "engine-1", "cell": CELL, "graph_sequence": 7, "started_at": moment(5)}
    golden = [
        {"graph": "P128", "chosen": False, "estimate_ns": int(34.5 * MS), "expected_tokens": 10.0},
        {"graph": "decode", "chosen": True, "estimate_ns": 13 * MS, "expected_tokens": 4.0},
    ]
    rows = ask(clickhouse, "candidates")
    assert [common | one for one in golden] == [picked(row, common | golden[0]) for row in rows]
    assert rows[0]["expected_tokens_per_s"] == pytest.approx(10 / 0.0345)


def test_engines(clickhouse: Client) -> None:
    insert(clickhouse, [round_of(0, 0, "P128", 28, cell_arm="before"), round_of(1, 30_000, "decode", 13)])
    insert(
        clickhouse,
        [round_of(0, 0, "prefill-2048", 12, graph_kind=GraphKind.PREFILL, scheduler_cost_model="")],
        ENGINE._replace(service_instance_id="engine-2", gpu_ids=("0", "1"), engine_attributes={"all_reduce": "nccl"}),
    )
    golden = {
        "service_instance_id": "engine-1",
        "graphs": ["P128", "decode"],
        "has_speculative": True,
        "scheduler_cost_model": "exposed_mean",
        "first_seen": moment(0),
        "last_seen": moment(30_013),
        "executions": 2,
        "cells": 2,
        "arms": ["before"],
    }
    first, second = ask(clickhouse, "engines")
    assert golden == picked(first, golden)
    golden = {"gpu_ids": ["0", "1"], "engine_attributes": {"all_reduce": "nccl"}, "has_speculative": False, "arms": []}
    assert golden == picked(second, golden)
    assert datetime.now(UTC) - second["last_received_at"].replace(tzinfo=UTC) < timedelta(minutes=5)


def eventful_engine() -> list[Any]:
    """The fooled one with something of everything: drafts, a drained round, a late host, a lost execution."""
    drained = {"graph_queue_depth": 0, "wall_ms": 58, "batch_tokens_drafted": 12, "batch_tokens_accepted": 6}
    return [
        *fooled_engine(),
        round_of(18, 330, "P128", 28, **drained),
        round_of(20, 400, "P128", 28, **drained),
        round_of(21, 500, "P128", 28, **drained),
    ]


FILTERS = {
    "host": "node-2",
    "package": "other",
    "recipe": "c1",
    "service_instance_id": "engine-2",
    "arm": "after",
    "cell": "bench-2",
}


ASKED_BY_PEOPLE = [
    query
    for query in load().values()
    if query.topic not in ("alerts", "annotations")
    and query.name
    not in (
        *("judgements", "live_overcharged", "live_regressed", "live_seconds"),
        *("repeated_numbers", "rollup_differences", "sampled_cells"),
    )
]
"""Rules of alerts look at what is arriving now, and find nothing where nothing is wrong: they have tests of their own, and so have notes, judgements, seconds, numbers that come twice, and sampling."""


@pytest.mark.parametrize("query", ASKED_BY_PEOPLE, ids=lambda query: query.name)
def test_every_query_has_its_columns_and_every_filter_filters(clickhouse: Client, query: Query) -> None:
    other = ENGINE._replace(
        service_instance_id="engine-2", host_name="node-2", engine_package="other", engine_recipe="c1"
    )
    insert(clickhouse, eventful_engine())
    insert(clickhouse, [one._replace(cell_arm="after", cell_id="bench-2") for one in eventful_engine()], other)
    shared = ANY_LENGTH if "minimum_decoding_s" in {parameter.name for parameter in query.parameters} else {}
    if query.name == "slow_executions":
        shared = {"slowest_count": 30}
    if query.topic == "live":
        judge_cells(clickhouse)
    unfiltered = ask(clickhouse, query.name, **shared)
    assert list(unfiltered[0]) == [column.name for column in query.columns]
    # Hours of graphs know neither arms nor cells: live_drift refuses them.
    for parameter, kept in FILTERS.items():
        if query.name == "live_drift" and parameter in ("arm", "cell"):
            with pytest.raises(ParameterError, match=f"live_drift has no parameter '{parameter}'"):
                ask(clickhouse, query.name, **{parameter: kept})
            continue
        assert 0 < len(ask(clickhouse, query.name, **{parameter: kept}, **shared)) < len(unfiltered), parameter
        for since in ({}, {"from": START}):
            # It filters what is told, and does not just say where the time asked for begins.
            assert ask(clickhouse, query.name, **{parameter: "absent"}, **since, **shared) == [], parameter
    assert len(ask(clickhouse, query.name, limit=1, **shared)) == 1


def test_a_graph_without_gpu_time_has_no_measured_cost(clickhouse: Client) -> None:
    insert(clickhouse, [round_of(n, 13 * n, "decode", 0, wall_ms=0, **FOOLED) for n in range(6)])
    assert ask(clickhouse, "estimate_inflation") == []
    (row,) = ask(clickhouse, "cells", **ANY_LENGTH)
    assert (row["plain_fraction"], row["decisions_turned"]) == (None, 0)
