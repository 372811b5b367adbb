"""A fault of ours in any wrapper leaves vLLM's output untouched; and what all the wrappers cost."""

from collections.abc import Callable
from typing import Any

import pytest

from engine_hooks.adapters.guarded import FAILURES_MAX
from engine_hooks.adapters.vllm import targets

ON_CPU = [
    targets.CREATED,
    targets.SCHEDULE,
    targets.UPDATE,
    targets.STEP,
    targets.RESUME,
    targets.SHUTDOWN,
    targets.SAMPLE,
]
"""The graphs' methods do not run without a GPU: `test_graphs.py` calls them."""
OFTEN = {targets.SCHEDULE, targets.UPDATE, targets.STEP, targets.SAMPLE}


@pytest.mark.parametrize("when", ["before", "after"])
def test_tokens_out_are_those_of_vllm_alone(alone: dict[str, Any], recorded: dict[str, Any], when: str) -> None:
    assert recorded["faults"]["tokens"][when] == alone["ngram"]["tokens"]


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("method", ON_CPU, ids=lambda method: method.title)
def test_each_fault_was_counted(recorded: dict[str, Any], method: targets.Method, when: str) -> None:
    failures = recorded["faults"]["failures"][f"{method.title} {when}"]
    assert failures == FAILURES_MAX if method in OFTEN else 0 < failures <= FAILURES_MAX
    assert recorded["faults"]["on"][f"{method.title} {when}"] is (method not in OFTEN)


def test_what_a_step_pays(recorded: dict[str, Any], report: Callable[[str], None]) -> None:
    cost = recorded["overhead"]
    report(
        f"hooks: {cost['hooks_us']:.1f} us a step of the engine's thread (median; {cost['lanes']} lanes), "
        f"{cost['hooks_us'] / cost['step_us']:.2%} of a step of {cost['step_us'] / 1e3:.1f} ms on this CPU"
    )
    assert cost["hooks_us"] < 500
