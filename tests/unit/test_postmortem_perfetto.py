"""The timeline: what stands where, from executions written by hand."""

import json
from itertools import pairwise
from typing import Any

from engine_hooks.contract.execution import EngineResource, GraphExecution
from engine_hooks.contract.names import GraphKind
from queries.postmortem.perfetto import trace_of
from queries.record import CellExecutions

MS = 1_000_000
EPOCH = 1_793_491_200_000_000_000
DEVICE, HOST = 1, 2


def execution(sequence: int, submitted_ms: float, begins_ms: float, gpu_ms: float, **more: Any) -> GraphExecution:
    submitted, begins, gpu = (round(each * MS) for each in (submitted_ms, begins_ms, gpu_ms))
    return GraphExecution(
        graph_name="P128",
        graph_kind=GraphKind.SPECULATIVE,
        graph_sequence=sequence,
        graph_gpu_time_ns=gpu,
        graph_wall_time_ns=gpu,
        started_at=EPOCH + submitted,
        duration_ns=begins + gpu - submitted,
        graph_gpu_start_offset_ns=begins - submitted,
        **more,
    )


# Two in flight; the third is submitted 40 ms after the second was observed to end: the host stumbled.
CELL = CellExecutions(
    EngineResource("engine-1", host_name="gpu-node-1"),
    "cell-1",
    (
        execution(
            0,
            0,
            0,
            30,
            graph_queue_depth=0,
            scheduler_candidate_graphs=("P128", "decode"),
            scheduler_candidate_estimates_ns=(29 * MS, 14 * MS),
            scheduler_candidate_expected_tokens=(70.0, 32.0),
        ),
        execution(
            1,
            1,
            30,
            30,
            graph_queue_depth=1,
            scheduler_candidate_graphs=("P128", "decode"),
            scheduler_candidate_estimates_ns=(29 * MS, 14 * MS),
            scheduler_candidate_expected_tokens=(70.0, 32.0),
        ),
        execution(2, 100, 100.1, 30, graph_queue_depth=0, graph_gpu_time_source=None),
    ),
)


def events(phase: str, lane: int | None = None) -> list[dict[str, Any]]:
    every = json.loads(json.dumps(trace_of(CELL)))["traceEvents"]
    return [event for event in every if event["ph"] == phase and lane in (None, event.get("tid"))]


def test_every_event_has_what_its_phase_needs() -> None:
    needed = {
        "X": {"ts", "dur"},
        "b": {"ts", "id", "cat"},
        "e": {"ts", "id", "cat"},
        "C": {"ts", "args"},
        "M": {"args"},
    }
    for event in trace_of(CELL)["traceEvents"]:
        assert needed[event["ph"]] | {"name", "pid", "ph"} <= event.keys()
        assert event.get("ts", 0) >= 0


def test_the_device_lane_is_gpu_time_in_microseconds_and_never_overlaps() -> None:
    slices = events("X", DEVICE)
    assert [(one["ts"], one["dur"]) for one in slices] == [(0, 30_000), (30_000, 30_000), (100_100, 30_000)]
    assert all(one["ts"] + one["dur"] <= other["ts"] for one, other in pairwise(slices))
    assert slices[0]["args"]["graph_gpu_time_ns"] == 30 * MS


def test_the_host_lane_shows_the_stumble() -> None:
    # The second was planned from the submission before it, the third from the completion of the second at 60 ms.
    assert [(one["ts"], one["dur"]) for one in events("X", HOST)] == [(0, 1_000), (60_000, 40_000)]


def test_submissions_begin_and_end_in_pairs() -> None:
    begun = {one["id"]: one["ts"] for one in events("b")}
    ended = {one["id"]: one["ts"] for one in events("e")}
    assert begun == {0: 0, 1: 1_000, 2: 100_000}
    assert ended == {0: 30_000, 1: 60_000, 2: 130_100}


def test_estimates_are_counters_where_they_change_and_depth_at_every_submission() -> None:
    counted = [(one["name"], one["ts"], *one["args"].values()) for one in events("C")]
    assert [one for one in counted if one[0].startswith("estimate")] == [
        ("estimate P128", 0, 29.0),
        ("estimate decode", 0, 14.0),
    ]
    assert [one[1:] for one in counted if one[0] == "queue depth"] == [(0, 0), (1_000, 1), (100_000, 0)]


def test_without_the_devices_clock_an_execution_ends_when_it_was_observed() -> None:
    unclocked = CELL.executions[1]._replace(graph_gpu_start_offset_ns=None)
    only = CELL._replace(executions=(unclocked,))
    (began,) = [one["ts"] for one in trace_of(only)["traceEvents"] if one["ph"] == "X" and one["tid"] == DEVICE]
    assert began == 29_000
