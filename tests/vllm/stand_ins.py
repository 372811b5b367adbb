"""Objects of vLLM's own classes, made without a GPU, and one call of each method that deals with CUDA graphs."""

from types import SimpleNamespace
from typing import Any

import numpy as np
from vllm.compilation.cuda_graph import CUDAGraphEntry, CUDAGraphWrapper
from vllm.config.compilation import CUDAGraphMode
from vllm.forward_context import BatchDescriptor, create_forward_context, override_forward_context
from vllm.v1.worker.gpu.cudagraph_utils import BatchExecutionDescriptor, CudaGraphManager
from vllm.v1.worker.gpu.spec_decode.adaptive_verification import AdaptiveVerificationManager

from engine_hooks.adapters.vllm import targets
from engine_hooks.adapters.vllm.graph_hooks import GraphHooks
from engine_hooks.adapters.vllm.steps import Step


class CountingGraph:
    def __init__(self) -> None:
        self.replays = 0

    def replay(self) -> None:
        self.replays += 1


def seen_of(step: Step, output: Any) -> dict[str, Any]:
    return {"graph": step.graph, "budget": step.budget, "estimate_ns": step.estimate_ns, "output": output}


def begun(hooks: GraphHooks) -> Step:
    step = Step(None, 0, 0, 0, after_idle=True)
    hooks.begin(step)
    return step


def full_graph(hooks: GraphHooks) -> dict[str, Any]:
    """The V2 runner: a graph of 8 requests with 4 tokens each."""
    graph = BatchExecutionDescriptor(CUDAGraphMode.FULL, num_tokens=32, num_reqs=8, uniform_token_count=4)
    manager, counting = object.__new__(CudaGraphManager), CountingGraph()
    manager.graphs = {graph: counting}
    step = begun(hooks)
    manager.run_fullgraph(graph)
    return seen_of(step, counting.replays)


def graph_call(hooks: GraphHooks) -> dict[str, Any]:
    """The V1 runner: a graph of 8 requests with one token each, captured before."""
    graph = BatchDescriptor(num_tokens=8, num_reqs=8, uniform=True)
    wrapper, counting = object.__new__(CUDAGraphWrapper), CountingGraph()
    wrapper.runtime_mode = CUDAGraphMode.FULL
    wrapper.is_debugging_mode = False
    wrapper.concrete_cudagraph_entries = {graph: CUDAGraphEntry(graph, cudagraph=counting, output="its output")}
    config = SimpleNamespace(compilation_config=SimpleNamespace(static_forward_context={}, fast_moe_cold_start=False))
    context = create_forward_context(None, config, cudagraph_runtime_mode=CUDAGraphMode.FULL, batch_descriptor=graph)
    step = begun(hooks)
    with override_forward_context(context):
        output = wrapper()
    return seen_of(step, [counting.replays, output])


def budget(hooks: GraphHooks) -> dict[str, Any]:
    """Adaptive verification of two requests with four drafts each; verifying costs 1 ms and 0.1 ms a token."""
    manager = object.__new__(AdaptiveVerificationManager)
    manager.cost_tables = np.full(3, 0.5), 1 + 0.1 * np.arange(65)
    manager.num_speculative_steps, manager.num_bonus_tokens, manager._max_total_logits = 4, 1, 64
    manager._stale_confidences, manager._stale_idx = [SimpleNamespace(np=np.full((2, 4), 0.9))], 0
    manager.req_states = SimpleNamespace(
        req_id_to_index={"a": 0, "b": 1},
        num_computed_tokens_np=np.array([10, 10]),
        prefill_len=SimpleNamespace(np=np.array([5, 5])),
    )
    step = begun(hooks)
    tokens = manager.get_num_tokens({"a": 5, "b": 5}, {"a": [1, 2, 3, 4], "b": [1, 2, 3, 4]})
    return seen_of(step, tokens)


ACTS = {targets.FULL_GRAPH: full_graph, targets.GRAPH_CALL: graph_call, targets.BUDGET: budget}
