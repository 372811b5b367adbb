"""A simulated cell, through the collector and back: the same model takes every decision again, exactly."""

import json
from collections.abc import Iterator

import pytest

from engine_hooks.contract.names import Purpose
from engine_hooks.cost_model.registry import cost_model_named
from queries.replay.exact import believed_again
from tests.fixtures.running import Addresses, running_collector, tachograph
from tests.fixtures.stored_rows import stored


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Addresses]:
    with running_collector(tmp_path_factory.mktemp("parity")) as addresses:
        yield addresses


@pytest.mark.parametrize("model", ["exposed_mean", "drained_share", "startup_median", "idle_gap"])
def test_every_decision_comes_out_again(collector: Addresses, model: str) -> None:
    sent = tachograph(collector, "simulate", "cell", "--model", model, "--seed", "3", "--send", "--json")
    assert sent.returncode == 0, sent.stderr
    summary = json.loads(sent.stdout)
    rows = stored(collector, summary["service_instance_id"], summary["executions"])
    assert len(rows) == summary["executions"]
    compared = 0
    for execution, totals_ns in believed_again((row for row, _ in rows), cost_model_named(model)):
        assert totals_ns == execution.scheduler_candidate_estimates_ns
        if execution.graph_purpose == Purpose.ORDINARY:
            values = [
                tokens / total_ns
                for tokens, total_ns in zip(execution.scheduler_candidate_expected_tokens, totals_ns, strict=True)
            ]
            assert execution.scheduler_candidate_graphs[values.index(max(values))] == execution.graph_name
            compared += 1
    assert compared > 500
