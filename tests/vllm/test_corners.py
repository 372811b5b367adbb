"""What real vLLM does besides decoding from start to end."""

from typing import Any

import pytest

from tests.vllm.driven import Stored, Vllm

IDLE_NS = 250_000_000
"""Less than any of the pauses that the scenario makes."""


@pytest.fixture
def corners(recorded: dict[str, Any]) -> dict[str, Any]:
    return recorded["corners"]  # type: ignore[no-any-return]


@pytest.fixture
def stored(vllm: Vllm, corners: dict[str, Any]) -> Stored:
    return vllm.stored(corners["instance"], corners["failing"]["after"] - 1)


def test_figures_equal_vllms_own_through_all_of_it(corners: dict[str, Any], stored: Stored) -> None:
    assert stored.sums() == corners["metrics"]


def test_structured_output_waits_for_the_grammar(corners: dict[str, Any], stored: Stored) -> None:
    reasons = [row["graph_completion_feedback_reason"] for row in stored.phase(corners["structured"])]
    assert reasons[0] == "prefill"
    assert "grammar" in reasons
    assert set(reasons[1:]) <= {"grammar", "prefill"}
    elsewhere = [row for row in stored.rows if row["graph_sequence"] >= corners["structured"]["after"]]
    assert "grammar" not in {row["graph_completion_feedback_reason"] for row in elsewhere}


def test_aborted_requests_leave_the_batch(corners: dict[str, Any], stored: Stored) -> None:
    rows = stored.phase(corners["aborted"])
    assert list(corners["aborted"]["counts"]) == ["a2"]
    assert [row["batch_lanes"] for row in rows[:4]] == [3, 3, 3, 3]
    assert rows[4]["batch_lanes"] == 2  # one of the two goes while it runs, and its tokens with it
    assert {row["batch_lanes"] for row in rows[5:]} == {1}
    assert rows[4]["batch_tokens_emitted"] <= 1 + rows[4]["batch_tokens_accepted"]


def test_no_interval_spans_an_idle_time(corners: dict[str, Any], stored: Stored) -> None:
    rows = stored.phase(corners["idle"])
    starts = [row for row in rows if row["graph_after_idle"]]
    assert [row["graph_kind"] for row in starts] == ["prefill", "prefill"]
    pause = starts[1]["started_at"] - starts[0]["started_at"]
    assert pause.total_seconds() * 1e9 > IDLE_NS
    assert starts[1]["graph_wall_time_ns"] == starts[1]["graph_gpu_time_ns"] == starts[1]["duration_ns"]


def test_sleep_is_idle(corners: dict[str, Any], stored: Stored) -> None:
    woken = next(row for row in stored.rows if row["graph_sequence"] == corners["paused"]["woken"])
    before = next(row for row in stored.rows if row["graph_sequence"] == corners["paused"]["woken"] - 1)
    assert woken["graph_kind"] != "prefill"
    assert (woken["started_at"] - before["started_at"]).total_seconds() * 1e9 - before["duration_ns"] > IDLE_NS
    assert woken["graph_after_idle"]
    assert woken["graph_wall_time_ns"] == woken["duration_ns"]


def test_the_engines_own_failure_passes_through(corners: dict[str, Any], stored: Stored) -> None:
    failing = corners["failing"]
    assert failing["failed"] == "the device fell off"
    assert (failing["abandoned"], failing["in_flight"]) == (1, 0)
    assert stored.phase(failing) == []
