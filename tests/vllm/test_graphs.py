"""vLLM's own methods around CUDA graphs, called on stand-in graphs: what their hooks see, and that faults do nothing."""

from typing import Any

import pytest

from engine_hooks.adapters.vllm import targets
from tests.vllm.driven import Vllm

EXPECTED = {
    targets.FULL_GRAPH: {"graph": "FULL-8x4", "budget": 32, "estimate_ns": None, "output": 1},
    targets.GRAPH_CALL: {"graph": "FULL-8x1", "budget": 8, "estimate_ns": None, "output": [1, "its output"]},
    # 0.5 ms of drafting, 1 ms and ten tokens of 0.1 ms: it verifies all it has.
    targets.BUDGET: {"graph": "", "budget": 10, "estimate_ns": 2_500_000, "output": 10},
}


@pytest.fixture(scope="module")
def graphs(vllm: Vllm) -> dict[str, Any]:
    return vllm.run("graphs")["graphs"]  # type: ignore[no-any-return]


@pytest.mark.parametrize("method", EXPECTED, ids=lambda method: method.title)
def test_what_is_seen(graphs: dict[str, Any], method: targets.Method) -> None:
    assert graphs[method.title]["seen"] == EXPECTED[method]


@pytest.mark.parametrize("method", EXPECTED, ids=lambda method: method.title)
def test_faults_change_nothing(graphs: dict[str, Any], method: targets.Method) -> None:
    outputs = graphs[method.title]["outputs"]
    assert outputs == [EXPECTED[method]["output"]] * 3
    assert graphs[method.title]["failures"] == 2
