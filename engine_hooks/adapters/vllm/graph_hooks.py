"""The hooks in the model runner, where it lives in the engine core's process: which CUDA graph a step replays,
what vLLM's adaptive verification estimated, and the device's own times."""

import sys
from functools import lru_cache
from typing import Any

from engine_hooks.adapters.guarded import argument
from engine_hooks.adapters.vllm.device_times import DeviceTimes, device_times
from engine_hooks.adapters.vllm.steps import Step
from engine_hooks.adapters.vllm.targets import FORWARD_CONTEXT


class GraphHooks:
    """What is done around the methods of the model runner's graphs. They run between a step's schedule and its end.

    A step's first graph is the target model's; a drafter's graphs come after it. Outside of any step (capture,
    warm-up, the dummy batches of data parallelism) nothing is noted.
    """

    def __init__(self) -> None:
        self._step: Step | None = None
        self._device: DeviceTimes | None = None

    def prepare(self) -> None:
        """Makes the device's events, before there are steps."""
        self._device = device_times()

    def attributes(self) -> dict[str, str]:
        """What the resource says of the device's times. On a drained queue the start event fires at once."""
        return {} if self._device is None else {"drained_gpu_time": "with launch latency"}

    def begin(self, step: Step) -> None:
        """A step is about to be submitted: graphs replayed from now on are its own."""
        self._step = step

    def end(self, step: Step) -> None:
        """The step's results were taken in."""
        if self._step is step:
            self._step = None
            if self._device is not None:
                self._device.abandon()

    def collect(self) -> None:
        """Steps that the device has finished learn their times."""
        if self._device is not None:
            self._device.collect()

    def replaying_v2(self, _manager: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        """Before `CudaGraphManager.run_fullgraph`."""
        step = self._step
        if step is not None and not step.graph:
            graph = argument(arguments, named, 0, "desc")
            self._first_graph(step, v2_graph_name(graph), graph.num_tokens)

    def calling_v1(self, wrapper: Any, _arguments: tuple[Any, ...], _named: dict[str, Any]) -> None:
        """Before `CUDAGraphWrapper.__call__`, which replays only where its mode is the step's and it has captured."""
        step = self._step
        if step is None or step.graph:
            return
        context = _forward_context()
        if context is None or context.cudagraph_runtime_mode != wrapper.runtime_mode:
            return
        graph = context.batch_descriptor
        if graph in wrapper.concrete_cudagraph_entries:
            self._first_graph(step, v1_graph_name(wrapper.runtime_mode, graph), graph.num_tokens)

    def sampled(self, _worker: Any, _seen: Any, _result: Any) -> None:
        """After `Worker.sample_tokens`, which drafts as well: the step's work on the device is submitted."""
        if self._device is not None:
            self._device.end()

    def _first_graph(self, step: Step, name: str, tokens: int) -> None:
        step.graph = name
        step.budget = step.budget or tokens
        if self._device is not None:
            self._device.begin(step)

    def budgeting(self, _manager: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> int:
        """Before `AdaptiveVerificationManager.get_num_tokens`: how many requests there are."""
        return len(argument(arguments, named, 0, "num_tokens_per_req"))

    def budgeted(self, manager: Any, requests: int, tokens: int) -> None:
        """After it: how many tokens it makes room for, and what its cost tables (ms) say of them."""
        step = self._step
        if step is None:
            return
        step.budget = tokens
        draft_ms, verify_ms = manager.cost_tables
        step.estimate_ns = round((float(draft_ms[requests]) + float(verify_ms[tokens])) * 1e6)


@lru_cache(maxsize=4096)
def v2_graph_name(graph: Any) -> str:
    """`FULL-8x4` for 8 requests of 4 tokens each, `FULL-512` where a graph takes any mixture of 512 tokens."""
    return _graph_name(graph.cg_mode.name, graph, graph.uniform_token_count)


@lru_cache(maxsize=4096)
def v1_graph_name(mode: Any, graph: Any) -> str:
    """As `v2_graph_name`; the V1 runner's descriptor says only that its requests are alike."""
    alike = graph.num_tokens // graph.num_reqs if graph.uniform and graph.num_reqs else None
    return _graph_name(mode.name, graph, alike)


def _graph_name(mode: str, graph: Any, tokens_each: int | None) -> str:
    size = f"{graph.num_tokens // tokens_each}x{tokens_each}" if tokens_each else f"{graph.num_tokens}"
    adapters = f"-lora{graph.num_active_loras}" if graph.num_active_loras else ""
    return f"{mode}-{size}{adapters}"


def _forward_context() -> Any:
    module = sys.modules.get(FORWARD_CONTEXT)
    if module is None or not module.is_forward_context_available():
        return None
    return module.get_forward_context()
