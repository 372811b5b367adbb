"""What is stored of real vLLM on CPU, against vLLM's own figures, a stopwatch, and vLLM alone."""

import itertools
import statistics
from collections.abc import Callable
from typing import Any

import pytest

from tests.vllm.driven import Stored, Vllm

WITHIN = 0.01
KINDS = {"plain": {"prefill", "mixed", "plain_decode"}, "ngram": {"prefill", "mixed", "speculative"}}


def stored_of(vllm: Vllm, recorded: dict[str, Any], run: str) -> tuple[dict[str, Any], Stored]:
    seen = recorded["plain_and_ngram"][run]
    return seen, vllm.stored(seen["instance"], len(seen["times"]))


@pytest.fixture(params=["plain", "ngram"])
def run(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_without_an_endpoint_nothing_is_wrapped(alone: dict[str, Any]) -> None:
    assert alone["plain"]["instance"] == alone["ngram"]["instance"] == ""
    assert alone["wrapped"] is False


def test_tokens_out_are_the_same(alone: dict[str, Any], recorded: dict[str, Any], run: str) -> None:
    assert recorded["plain_and_ngram"]["wrapped"] is True
    assert recorded["plain_and_ngram"][run]["tokens"] == alone[run]["tokens"]


def test_every_step_is_stored_once(vllm: Vllm, recorded: dict[str, Any], run: str) -> None:
    seen, stored = stored_of(vllm, recorded, run)
    assert [row["graph_sequence"] for row in stored.rows] == list(range(len(seen["times"])))


def test_figures_equal_vllms_own(vllm: Vllm, recorded: dict[str, Any], run: str) -> None:
    seen, stored = stored_of(vllm, recorded, run)
    assert stored.sums() == seen["metrics"]
    assert stored.sums()["emitted"] == sum(map(len, seen["tokens"]))
    assert (stored.sums()["accepted"] > 0) is (run == "ngram")


def test_wall_times_are_those_of_a_stopwatch(
    vllm: Vllm, recorded: dict[str, Any], run: str, report: Callable[[str], None]
) -> None:
    seen, stored = stored_of(vllm, recorded, run)
    ends = [end for _, end in seen["times"]]
    by_stopwatch = [seen["times"][0][1] - seen["times"][0][0]] + [b - a for a, b in itertools.pairwise(ends)]
    by_hooks = [row["graph_wall_time_ns"] for row in stored.rows]
    off = sorted(abs(a - b) / b for a, b in zip(by_hooks, by_stopwatch, strict=True))
    report(
        f"{run}: wall times are off a stopwatch by {statistics.median(off):.4%} (median), {off[-1]:.4%} (worst of {len(off)})"
    )
    assert sum(by_hooks) == pytest.approx(sum(by_stopwatch), rel=WITHIN)
    assert off[round(0.97 * len(off)) - 1] <= WITHIN  # between two clock readings any machine may stumble


def test_host_times_add_up(vllm: Vllm, recorded: dict[str, Any], run: str) -> None:
    """Drained, on the host's clock: submission to completion is device time, what is left of wall time the gap."""
    _, stored = stored_of(vllm, recorded, run)
    assert [row["graph_after_idle"] for row in stored.rows] == [True] + [False] * (len(stored.rows) - 1)
    for row in stored.rows:
        assert row["graph_gpu_time_source"] == "host"
        assert row["graph_queue_depth"] == 0
        assert row["graph_gpu_start_offset_ns"] == 0
        assert row["graph_gpu_time_ns"] == row["duration_ns"] <= row["graph_wall_time_ns"]


def test_kinds_names_and_lanes(vllm: Vllm, recorded: dict[str, Any], run: str) -> None:
    _, stored = stored_of(vllm, recorded, run)
    assert {row["graph_kind"] for row in stored.rows} == KINDS[run]
    assert stored.rows[0]["graph_name"] == "prefill-64"
    assert max(row["batch_lanes"] for row in stored.rows) == 8
    decoding = [row for row in stored.rows if row["graph_kind"] in {"plain_decode", "speculative"}]
    assert {row["graph_name"].split("-")[0] for row in decoding} == {"verify" if run == "ngram" else "decode"}
    for row in decoding:
        assert row["batch_tokens_emitted"] <= row["batch_lanes"] + row["batch_tokens_accepted"]
        assert row["graph_completion_feedback_reason"] == (
            "copied_proposals" if run == "ngram" else "completion_inputs"
        )
    for row in stored.rows:
        if row["graph_kind"] in {"prefill", "mixed"}:
            assert row["graph_completion_feedback_reason"] == "prefill"


def test_resource(vllm: Vllm, recorded: dict[str, Any]) -> None:
    _, stored = stored_of(vllm, recorded, "ngram")
    row = stored.rows[0]
    assert (row["engine_name"], row["engine_version"], row["engine_recipe"]) == ("vllm", "0.32.0", "ngram-4")
    assert row["engine_tensor_parallel"] == 1
    assert row["engine_attributes"] | {"data_parallel_rank": "0", "speculative_tokens": "4"} == row["engine_attributes"]


def test_asynchronous_scheduling(vllm: Vllm, alone: dict[str, Any], recorded: dict[str, Any]) -> None:
    seen = recorded["queued"]
    stored = vllm.stored(seen["instance"], len(seen["depths"]))
    assert seen["scheduler"] == "AsyncScheduler"
    assert seen["tokens"] == alone["plain"]["tokens"]
    assert [row["graph_queue_depth"] for row in stored.rows] == seen["depths"]
    assert set(seen["depths"]) == {0, 1}
    assert stored.sums() == seen["metrics"]
    generated = stored.rows[: seen["generated"]]
    assert not any(row["graph_completion_feedback"] for row in generated)
    # Each execution holds the pipeline up from the end of the one before it: together as long as all of it took.
    first, last = generated[0], generated[-1]
    elapsed_ns = (last["started_at"] - first["started_at"]).total_seconds() * 1e9 + last["duration_ns"]
    assert sum(row["graph_wall_time_ns"] for row in generated) == pytest.approx(elapsed_ns, rel=WITHIN)


def test_asynchronous_scheduling_waits_for_a_grammar(vllm: Vllm, recorded: dict[str, Any]) -> None:
    seen = recorded["queued"]
    rows = vllm.stored(seen["instance"], len(seen["depths"])).phase(seen["structured"])
    reasons = [row["graph_completion_feedback_reason"] for row in rows if row["graph_kind"] == "plain_decode"]
    assert reasons
    assert set(reasons) == {"grammar"}


def test_an_engine_core_of_its_own_loses_nothing_at_its_end(vllm: Vllm, alone: dict[str, Any]) -> None:
    before = set(vllm.instances())
    seen = vllm.run("served", own_process=True)["served"]
    (instance,) = set(vllm.instances()) - before
    stored = vllm.stored(instance, 1)
    assert seen["tokens"] == alone["ngram"]["tokens"]
    assert stored.sums() == seen["metrics"]
    assert [row["graph_sequence"] for row in stored.rows] == list(range(len(stored.rows)))
