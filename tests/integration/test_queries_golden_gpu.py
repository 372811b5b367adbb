"""The device, the host and the way of the data on the real engine: tiny rows in, figures worked out by hand out."""

from collections.abc import Iterable
from datetime import timedelta

import pytest
from clickhouse_connect.driver.client import Client

from engine_hooks.contract.execution import EngineResource, GraphExecution
from engine_hooks.contract.names import Purpose
from engine_hooks.contract.span import EXECUTION_COLUMNS
from tests.fixtures.asking import START, ask, moment, picked
from tests.fixtures.query_rows import ENGINE, MS, START_NS, insert, round_of, row_of


def on_device(sequence: int, at_ms: float, starts_ms: float, gpu_ms: float, **fields: object) -> GraphExecution:
    """An execution submitted at one time that starts on the device at another."""
    return round_of(sequence, at_ms, "P128", gpu_ms, graph_gpu_start_offset_ns=int((starts_ms - at_ms) * MS), **fields)


def test_gpu_idle_is_the_complement_of_the_union_and_attributed(clickhouse: Client) -> None:
    drained = {"graph_queue_depth": 0}
    insert(
        clickhouse,
        [
            on_device(0, 0, 0, 10),
            on_device(1, 2, 2, 20),  # another stream, busy till 22
            on_device(2, 5, 15, 5),  # its own stream was idle from 10 on, the device was not
            on_device(3, 25, 25, 5, graph_completion_feedback=True, **drained),  # 3 ms: host late
            on_device(4, 31, 32, 8, **drained),  # 2 ms: the host had to see number 3 first
            on_device(5, 1496.7, 1496.7, 10, graph_after_idle=True, **drained),  # 1456.7 ms between two requests
            on_device(7, 1510, 1511.7, 10, **drained),  # 5 ms, but number 6 was lost
            on_device(8, 1520, 1522.7, 10, graph_queue_depth=None),  # 1 ms, no depth recorded
            round_of(9, 1532.7, "decode", 13, wall_ms=17, **drained),  # no device start: 17 - 13
        ],
    )
    rows = {row["idle_cause"]: row for row in ask(clickhouse, "gpu_idle")}
    assert {cause: (row["idle_gaps"], round(row["idle_s"], 6)) for cause, row in rows.items()} == {
        "after_idle": (1, 1.4567),
        "host_late": (2, 0.007),
        "feedback": (1, 0.002),
        "unknown": (2, 0.006),
    }
    golden = {"host_name": "node-1", "idle_median_ns": 4 * MS, "idle_p99_ns": 4 * MS, "idle_max_ns": 4 * MS}
    assert golden == picked(rows["host_late"], golden)
    assert "feedback" not in {row["idle_cause"] for row in ask(clickhouse, "gpu_idle", gap_above_ns=2_500_000)}


def test_host_delays_by_size_and_period(clickhouse: Client) -> None:
    late = {"graph_queue_depth": 0, "graph_purpose": Purpose.ORDINARY}
    insert(
        clickhouse,
        [
            round_of(0, 0, "P128", 28),
            *(round_of(1 + n, 1000 + 5000 * n, "P128", 28, wall_ms=60.5, **late) for n in range(3)),
            round_of(4, 12_000, "P128", 28, wall_ms=29, **late),
            round_of(5, 13_000, "P128", 28, wall_ms=61, graph_queue_depth=0, graph_purpose=Purpose.REFRESH),
        ],
    )
    long, refresh, short = ask(clickhouse, "host_delays")
    golden = {
        "graph_purpose": "ordinary",
        "delay_from_ns": 20_480_000,
        "delay_below_ns": 40_960_000,
        "delays": 3,
        "delay_s": 0.0975,
        "delay_median_ns": int(32.5 * MS),
        "period_median_s": 5.0,
        "period_p10_s": 5.0,
        "period_p90_s": 5.0,
    }
    assert golden == picked(long, golden)
    assert (refresh["graph_purpose"], refresh["delays"], refresh["period_median_s"]) == ("refresh", 1, None)
    assert (short["delay_from_ns"], short["delay_median_ns"]) == (640_000, MS)


def test_queue_depth(clickhouse: Client) -> None:
    insert(
        clickhouse,
        [
            round_of(0, 0, "P128", 28, graph_queue_depth=0, graph_after_idle=True),
            round_of(1, 100, "P128", 28, graph_queue_depth=0),
            round_of(2, 200, "P128", 28, graph_queue_depth=2),
            round_of(3, 300, "P128", 28, graph_queue_depth=None),
            round_of(4, 1000, "P128", 28, graph_queue_depth=None),
        ],
    )
    golden = {
        "step_started_at": moment(0),
        "executions": 4,
        "queue_depth_mean": 2 / 3,
        "queue_depth_max": 2,
        "drained_executions": 1,
        "drained_fraction": 1 / 3,
    }
    first, second = ask(clickhouse, "queue_depth", step_s=1)
    assert golden == picked(first, golden)
    assert (second["queue_depth_mean"], second["drained_fraction"]) == (None, None)


def test_gpu_time_drift(clickhouse: Client) -> None:
    before = [round_of(n, 30_000 * n, "P128", gpu_ms) for n, gpu_ms in enumerate((27, 29, 28))]
    insert(clickhouse, [*before, round_of(3, 90_000, "P128", 29), round_of(4, 90_030, "P128", 29.8)])
    golden = {
        "graph_name": "P128",
        "executions": 2,
        "gpu_time_mean_ns": 29.4 * MS,
        "executions_before": 3,
        "gpu_time_mean_before_ns": 28.0 * MS,
        "drift_percent": 5.0,
        "drift_in_spreads": 1.4,
    }
    (row,) = ask(clickhouse, "gpu_time_drift", **{"from": START + timedelta(seconds=90)})
    assert golden == picked(row, golden)
    (short,) = ask(clickhouse, "gpu_time_drift", history_s=30, **{"from": START + timedelta(seconds=90)})
    assert (short["executions_before"], short["drift_in_spreads"]) == (1, None)
    (none,) = ask(clickhouse, "gpu_time_drift")
    assert (none["executions"], none["drift_percent"]) == (5, None)


def test_sequence_gaps(clickhouse: Client) -> None:
    insert(clickhouse, [round_of(n, 100 * n, "P128", 28) for n in (5, 6, 10, 11)])
    golden = {
        "sequence_before": 6,
        "sequence_after": 10,
        "executions_missing": 3,
        "gap_started_at": moment(600),
        "gap_ended_at": moment(1000),
        "gap_s": 0.4,
    }
    (row,) = ask(clickhouse, "sequence_gaps")
    assert golden == picked(row, golden)
    # A window without a gap, between two that have one at their edge: its executions are not missing.
    insert(clickhouse, [round_of(n, 30_000 + 100 * n, "P128", 28) for n in range(14, 20)])
    insert(clickhouse, [round_of(n, 60_000 + 100 * n, "P128", 28) for n in range(20, 25)])
    insert(clickhouse, [round_of(n, 90_000 + 100 * n, "P128", 28) for n in (25, 27)])
    gaps = [(row["sequence_before"], row["sequence_after"]) for row in ask(clickhouse, "sequence_gaps")]
    assert gaps == [(25, 27), (11, 14), (6, 10)]


def test_repeated_numbers(clickhouse: Client) -> None:
    rank = ENGINE._replace(service_instance_id="engine-2")
    alone, begun_again = (ENGINE._replace(service_instance_id=name) for name in ("engine-3", "engine-4"))
    run = [round_of(n, 100 * n, "P128", 28) for n in range(400)]
    insert(clickhouse, run)
    insert(clickhouse, [round_of(n, 100 * n + 3, "P128", 28) for n in range(310)])
    # With losses, so that they are no more than the numbers between their first and their last.
    insert(clickhouse, [round_of(n, 100 * n, "P128", 28) for n in range(0, 300, 3)], rank)
    insert(clickhouse, [round_of(n, 100 * n + 3, "P128", 28) for n in range(0, 300, 6)], rank)
    insert(clickhouse, run[::7], alone)
    # One run after the other, not at the same time.
    insert(clickhouse, run[:200], begun_again)
    insert(clickhouse, [round_of(n, 60_000 + 100 * n, "P128", 28) for n in range(200)], begun_again)
    assert ask(clickhouse, "repeated_numbers") == [
        {
            "service_instance_id": "engine-1",
            "executions_again": 310,
            "executions": 710,
            "windows": 2,
            "repeated_since": moment(0),
            "repeated_until": moment(60_000),
        },
        {
            "service_instance_id": "engine-2",
            "executions_again": 50,
            "executions": 150,
            "windows": 1,
            "repeated_since": moment(0),
            "repeated_until": moment(30_000),
        },
    ]
    (second,) = ask(clickhouse, "repeated_numbers", service_instance_id="engine-2")
    assert second["executions_again"] == 50
    assert len(ask(clickhouse, "repeated_numbers", limit=1)) == 1
    later = {"from": START + timedelta(seconds=60)}
    assert ask(clickhouse, "repeated_numbers", **later) == ask(clickhouse, "repeated_numbers", host="absent") == []


def test_repeated_numbers_of_the_last_window_there_is_end_after_it(clickhouse: Client) -> None:
    """A clock so far ahead that its windows fit in no DateTime."""
    far_ns = 4_400_000_000 * 10**9
    insert(clickhouse, [round_of(7, 0, "P128", 28)._replace(started_at=far_ns + n * MS) for n in range(2)])
    (row,) = ask(clickhouse, "repeated_numbers", **{"from": START})
    assert row["repeated_until"] - row["repeated_since"] == timedelta(seconds=30)


def insert_received(
    client: Client, executions: Iterable[GraphExecution], engine: EngineResource, after_s: float
) -> None:
    """Store executions that arrived so long after they ended."""
    rows = []
    for one in executions:
        ended_ms = (one.started_at + one.duration_ns - START_NS) / MS
        rows.append([*row_of(one, engine), START + timedelta(milliseconds=ended_ms, seconds=after_s)])
    client.insert("new_executions", rows, column_names=[*EXECUTION_COLUMNS, "received_at"])


def test_clock_skew_says_since_when(clickhouse: Client) -> None:
    cells = [[round_of(n, 30_000 * n, "P128", 1000)] for n in range(4)]
    for n, cell in enumerate(cells):
        insert_received(clickhouse, cell, ENGINE, 1 if n < 2 else -240)
        insert_received(clickhouse, cell, ENGINE._replace(service_instance_id="e2", host_name="node-2"), 2)
    golden = {
        "host_name": "node-1",
        "instances": 1,
        "clock": "ahead",
        "off_s": -240.0,
        "off_since": moment(60_000),
        "arrival_delay_median_s": 1.0,
        "arrival_delay_min_s": -240.0,
        "arrival_delay_max_s": 1.0,
    }
    ahead, in_step = ask(clickhouse, "clock_skew", last_s=0)
    assert golden == picked(ahead, golden)
    assert (in_step["host_name"], in_step["clock"], in_step["off_s"], in_step["off_since"]) == (
        "node-2",
        "in step",
        0,
        None,
    )
    assert ask(clickhouse, "clock_skew", last_s=0, off_above_s=1.5)[1]["clock"] == "behind or late"


def test_a_clock_that_is_ahead_does_not_hide_the_others(clickhouse: Client) -> None:
    insert_received(clickhouse, [round_of(0, 0, "P128", 1000)], ENGINE, 1)
    far = ENGINE._replace(service_instance_id="e2", host_name="node-2")
    insert_received(clickhouse, [round_of(0, 86_400_000, "P128", 1000)], far, -86_400)
    assert {row["host_name"] for row in ask(clickhouse, "cells")} == {"node-1", "node-2"}


def test_slow_executions_with_their_neighbours(clickhouse: Client) -> None:
    walls = (28, 28, 61, 28, 28, 40, 28)
    insert(clickhouse, [round_of(n, 100 * n, "P128", 28, wall_ms=wall) for n, wall in enumerate(walls)])
    insert(clickhouse, [round_of(7, 5000, "P128", 28, wall_ms=1500, graph_after_idle=True)])
    rows = ask(clickhouse, "slow_executions", slowest_count=2, neighbours=1)
    assert [(row["slow_rank"], row["position"], row["graph_sequence"]) for row in rows] == [
        (1, -1, 1),
        (1, 0, 2),
        (1, 1, 3),
        (2, -1, 4),
        (2, 0, 5),
        (2, 1, 6),
    ]
    golden = {"slow_excess_ns": 33 * MS, "graph_wall_time_ns": 61 * MS, "started_at": moment(200)}
    assert golden == picked(rows[1], golden)
    assert rows[0]["slow_excess_ns"] is None


def test_cold_starts(clickhouse: Client) -> None:
    idle = {"graph_after_idle": True, "graph_queue_depth": 0}
    insert(
        clickhouse,
        [
            round_of(0, 0, "prefill", 100, wall_ms=150, **idle),
            round_of(1, 500, "P128", 80, wall_ms=400),
            round_of(2, 1000, "P128", 30, wall_ms=40),
            round_of(3, 1100, "P128", 28, wall_ms=30),
            round_of(4, 1200, "P128", 28, wall_ms=30),
        ],
    )
    golden = {
        "graph_name": "P128",
        "first_started_at": moment(500),
        "after_engine_start_s": 0.5,
        "from_engine_start": True,
        "executions": 4,
        "first_gpu_time_ns": 80 * MS,
        "first_wall_time_ns": 400 * MS,
        "gpu_time_median_ns": 28 * MS,
        "cold_excess_s": 0.38,
    }
    first, second = ask(clickhouse, "cold_starts", first_executions=2)
    assert golden == picked(first, golden)
    golden = {"graph_name": "prefill", "first_wall_time_ns": None, "gpu_time_median_ns": None, "cold_excess_s": None}
    assert golden == picked(second, golden)


@pytest.mark.parametrize(
    ("wanted", "cells"), [({}, 1), ({"last_s": 0}, 2), ({"cell": "old"}, 1), ({"arm": "before"}, 1)]
)
def test_without_from_the_newest_half_hour_is_asked_for(
    clickhouse: Client, wanted: dict[str, object], cells: int
) -> None:
    old = {"cell_id": "old", "cell_arm": "before"}
    insert(clickhouse, [round_of(0, 0, "P128", 28, **old), round_of(1, 1_900_000, "P128", 28)])
    assert len(ask(clickhouse, "cells", **wanted)) == cells
    assert len(ask(clickhouse, "executions", **wanted)) == cells
