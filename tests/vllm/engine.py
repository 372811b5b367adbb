"""Real vLLM on CPU, run by vLLM's own interpreter: `python -m tests.vllm.engine SCENARIO,… MODEL RESULT`.

Each scenario writes what it saw as JSON; the tests compare that with what the collector stored.
"""

import itertools
import json
import logging
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

os.environ |= {
    "HF_HUB_OFFLINE": "1",
    "OMP_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_NO_USAGE_STATS": "1",
}

NGRAM = {"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_max": 3, "prompt_lookup_min": 1}
METRICS = {
    "vllm:spec_decode_num_draft_tokens": "drafted",
    "vllm:spec_decode_num_accepted_tokens": "accepted",
    "vllm:generation_tokens": "emitted",
}


def build(model: str, **settings: Any) -> Any:
    """An engine whose figures can be repeated."""
    from vllm import LLM
    from vllm.platforms import current_platform

    defaults = {
        "dtype": "float32",
        "enforce_eager": True,
        "max_model_len": 256,
        "max_num_seqs": 8,
        "max_num_batched_tokens": 64,
        "enable_prefix_caching": False,
        "disable_log_stats": False,
        "seed": 0,
    }
    llm = LLM(model, **(defaults | settings))
    # A second engine of the process would register its kernels again, and vLLM 0.32 trips over llvmlite's library,
    # which n-gram speculation has loaded.
    current_platform.register_triton_kernel_overrides = lambda: None
    return llm


def prompts() -> list[dict[str, list[int]]]:
    """More prompts than lanes, some longer than a batch: prefills in chunks, and steps that are mixed."""
    return [{"prompt_token_ids": [5 + i, 6, 7, 8] * (2 + 9 * (i % 3))} for i in range(12)]


def generate(llm: Any, tokens: int = 24, **sampling: Any) -> list[list[int]]:
    """The tokens of every prompt."""
    from vllm import SamplingParams

    parameters = SamplingParams(max_tokens=tokens, temperature=0, ignore_eos=True, **sampling)
    return [list(one.outputs[0].token_ids) for one in llm.generate(prompts(), parameters, use_tqdm=False)]


def metrics(llm: Any) -> dict[str, int]:
    """vLLM's own counters."""
    values = dict.fromkeys(METRICS.values(), 0)
    for metric in llm.get_metrics():
        if metric.name in METRICS:
            values[METRICS[metric.name]] += int(metric.value)
    return values


def core_of(llm: Any) -> Any:
    """The engine core of an engine in this process."""
    return llm.llm_engine.engine_core.engine_core


def instance_of(llm: Any) -> str:
    run = getattr(core_of(llm).scheduler, "_tachograph_run", None)
    return "" if run is None else run.resource.service_instance_id


@contextmanager
def stopwatch(llm: Any) -> Iterator[list[tuple[int, int]]]:
    """Start and end of every step that ran, by the executor: not by anything that the hooks look at."""
    executor = core_of(llm).model_executor
    execute, sample = executor.execute_model, executor.sample_tokens
    times: list[tuple[int, int]] = []
    started = [0]

    def timed_execute(output: Any, **named: Any) -> Any:
        started[0] = time.perf_counter_ns() if output.total_num_scheduled_tokens else 0
        return execute(output, **named)

    def timed_sample(*arguments: Any, **named: Any) -> Any:
        result = sample(*arguments, **named)
        if started[0]:
            times.append((started[0], time.perf_counter_ns()))
        return result

    executor.execute_model, executor.sample_tokens = timed_execute, timed_sample
    try:
        yield times
    finally:
        executor.execute_model, executor.sample_tokens = execute, sample


def run(model: str, **settings: Any) -> dict[str, Any]:
    """One engine from its start to its end."""
    llm = build(model, **settings)
    with stopwatch(llm) as times:
        tokens = generate(llm)
    result = {"tokens": tokens, "metrics": metrics(llm), "times": times, "instance": instance_of(llm)}
    end(llm)
    return result


def end(llm: Any) -> None:
    llm.llm_engine.engine_core.shutdown()


def steps_of(llm: Any) -> Any:
    return core_of(llm).scheduler._tachograph_run.steps


def add(llm: Any, names: list[str], tokens: int = 16, **sampling: Any) -> None:
    """Requests by name, to be stepped by hand."""
    from vllm import SamplingParams

    for name, prompt in zip(names, prompts(), strict=False):
        llm.llm_engine.add_request(
            name, prompt, SamplingParams(max_tokens=tokens, temperature=0, ignore_eos=True, **sampling)
        )


def finish(llm: Any) -> dict[str, int]:
    """Steps until nothing is left; how many tokens each request that finished has."""
    counts = {}
    while llm.llm_engine.has_unfinished_requests():
        for one in llm.llm_engine.step():
            if one.finished:
                counts[one.request_id] = len(one.outputs[0].token_ids)
    return counts


# ---- scenarios


def plain_and_ngram(model: str) -> dict[str, Any]:
    """Hooks on or off by the environment; without, the tokens as vLLM alone gives them."""
    from vllm.v1.core.sched.scheduler import Scheduler

    runs = {"plain": run(model), "ngram": run(model, speculative_config=NGRAM)}
    return {**runs, "wrapped": hasattr(Scheduler.schedule, "_tachograph_hook")}


def corners(model: str) -> dict[str, Any]:
    """What is not plain or n-gram decoding from start to end, on one engine after another."""
    llm = build(model, speculative_config=NGRAM)
    result = {
        "instance": instance_of(llm),
        "structured": _phase(llm, _structured),
        "aborted": _phase(llm, _aborted),
        "idle": _phase(llm, _idle),
        "paused": _phase(llm, _paused),
        "failing": _phase(llm, _failing_step),
        "metrics": metrics(llm),
    }
    end(llm)
    return result


def _phase(llm: Any, act: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
    """What an act did, and which sequences it took."""
    first = steps_of(llm)._sequence
    result = act(llm)
    return {"first": first, "after": steps_of(llm)._sequence, **result}


def _structured(llm: Any) -> dict[str, Any]:
    from vllm.sampling_params import StructuredOutputsParams

    add(llm, ["s0", "s1"], structured_outputs=StructuredOutputsParams(regex="(one |two |three )*"))
    return {"counts": finish(llm)}


def _aborted(llm: Any) -> dict[str, Any]:
    """One request is aborted between two steps, one while a step runs, as the server does it."""
    add(llm, ["a0", "a1", "a2"], tokens=24)
    core = core_of(llm)
    for _ in range(4):
        llm.llm_engine.step()
    llm.llm_engine.abort_request(["a0"])
    execute, running = core.model_executor.execute_model, core.scheduler.running
    inside = next(request.request_id for request in running if request.request_id.startswith("a1"))

    def execute_and_abort(*arguments: Any, **named: Any) -> Any:
        core.aborts_queue.put([inside])
        return execute(*arguments, **named)

    core.model_executor.execute_model = execute_and_abort
    llm.llm_engine.step()
    core.model_executor.execute_model = execute
    llm.llm_engine.abort_request(["a1"])
    return {"counts": finish(llm)}


def _idle(llm: Any) -> dict[str, Any]:
    """Work, nothing for 0.3 s, work."""
    add(llm, ["i0"])
    first = finish(llm)
    time.sleep(0.3)
    add(llm, ["i1"])
    return {"counts": first | finish(llm)}


def _paused(llm: Any) -> dict[str, Any]:
    """Asleep for 0.3 s in the middle of a request."""
    add(llm, ["p0"])
    core = core_of(llm)
    for _ in range(3):
        llm.llm_engine.step()
    core.sleep(level=0, mode="keep")
    before = steps_of(llm)._sequence
    time.sleep(0.3)
    core.wake_up(tags=["scheduling"])
    return {"woken": before, "counts": finish(llm)}


def _failing_step(llm: Any) -> dict[str, Any]:
    """The engine's own failure: it passes through, and its step does not stay in flight for ever."""
    add(llm, ["f0"])
    core = core_of(llm)
    execute = core.model_executor.execute_model

    def fails(*_: Any, **__: Any) -> Any:
        raise RuntimeError("the device fell off")

    core.model_executor.execute_model = fails
    failed = ""
    try:
        core.step()
    except RuntimeError as error:
        failed = str(error)
    core.model_executor.execute_model = execute
    llm.llm_engine.abort_request(["f0"])
    core.step()
    return {"failed": failed, "abandoned": steps_of(llm).abandoned, "in_flight": len(steps_of(llm).in_flight)}


def queued(model: str) -> dict[str, Any]:
    """Asynchronous scheduling: two steps in flight."""
    with cpu_may_schedule_ahead():
        llm = build(model, async_scheduling=True)
    core = core_of(llm)
    depths = []
    execute = core.model_executor.execute_model

    def noting(output: Any, **named: Any) -> Any:
        if output.total_num_scheduled_tokens:
            depths.append(sum(1 for entry in core.batch_queue if entry[1].total_num_scheduled_tokens))
        return execute(output, **named)

    core.model_executor.execute_model = noting
    tokens = generate(llm)
    generated = len(depths)
    result = {
        "scheduler": type(core.scheduler).__name__,
        "tokens": tokens,
        "generated": generated,
        "structured": _phase(llm, _structured),
        "depths": depths,
        "instance": instance_of(llm),
        "metrics": metrics(llm),
    }
    end(llm)
    return result


@contextmanager
def cpu_may_schedule_ahead() -> Iterator[None]:
    """vLLM's CPU platform switches asynchronous scheduling off, though all of it runs there."""
    from vllm.platforms.cpu import CpuPlatform

    own = CpuPlatform.check_and_update_config

    def check(_platform: Any, config: Any) -> None:
        own(config)
        config.scheduler_config.async_scheduling = True

    CpuPlatform.check_and_update_config = classmethod(check)
    try:
        yield
    finally:
        CpuPlatform.check_and_update_config = own


def faults(model: str) -> dict[str, Any]:
    """Every hook raises, before and after; the engine is as it would be alone, and later as it was."""
    from engine_hooks.adapters.vllm.plugin import HOOKS

    result: dict[str, Any] = {"tokens": {}, "failures": {}, "on": {}}
    own = {method: (hook.before, hook.after) for method, hook in HOOKS.items()}
    for which in ("before", "after"):
        for method, hook in HOOKS.items():
            hook.before = _raises if which == "before" else (own[method][0] or _nothing)
            hook.after = _raises if which == "after" else own[method][1]
        llm = build(model, speculative_config=NGRAM)
        result["tokens"][which] = generate(llm)
        core = core_of(llm)
        core.sleep(level=0)
        core.wake_up(tags=["scheduling"])
        end(llm)
        for method, hook in HOOKS.items():
            result["failures"][f"{method.title} {which}"] = hook.failures
            result["on"][f"{method.title} {which}"] = hook.on
            hook.failures, hook.on = 0, True
    for method, hook in HOOKS.items():
        hook.before, hook.after = own[method]
    return result


def _raises(*_: Any) -> Any:
    raise RuntimeError("a fault of ours")


def _nothing(*_: Any) -> None:
    return None


def overhead(model: str) -> dict[str, Any]:
    """The engine thread's own time inside the hooks, step by step, beside how long a step takes."""
    from engine_hooks.adapters.vllm.plugin import HOOKS

    spent = [0]

    def timed(function: Any) -> Any:
        def call(*arguments: Any) -> Any:
            begun = time.thread_time_ns()
            try:
                return function(*arguments)
            finally:
                spent[-1] += time.thread_time_ns() - begun

        return call

    llm = build(model, max_num_seqs=32, max_num_batched_tokens=512, speculative_config=NGRAM)
    generate(llm)
    own = {method: (hook.before, hook.after) for method, hook in HOOKS.items()}
    for hook in HOOKS.values():
        hook.before, hook.after = (function and timed(function) for function in (hook.before, hook.after))
    core = core_of(llm)
    step = core.step_fn

    def counted() -> Any:
        spent.append(0)
        return step()

    core.step_fn = counted
    with stopwatch(llm) as times:
        generate(llm, tokens=100)
    for method, hook in HOOKS.items():
        hook.before, hook.after = own[method]
    end(llm)
    step_ns = statistics.median(after - before for (_, before), (_, after) in itertools.pairwise(times))
    return {"hooks_us": statistics.median(spent[1:]) / 1e3, "step_us": step_ns / 1e3, "lanes": len(prompts())}


def graphs(_model: str) -> dict[str, Any]:
    """vLLM's own methods around CUDA graphs, on graphs that only count their replays: there is no GPU.

    Each is called with hooks as they are, and with hooks that raise.
    """
    from vllm.plugins import load_general_plugins

    load_general_plugins()
    from engine_hooks.adapters.vllm.plugin import HOOKS
    from tests.vllm.stand_ins import ACTS

    result = {}
    for method, act in ACTS.items():
        hook = HOOKS[method]
        seen = act(hook.before.__self__)
        own = hook.before, hook.after
        hook.before = _raises
        without = act(own[0].__self__)
        hook.before, hook.after = own[0], _raises
        broken_after = act(own[0].__self__)
        result[method.title] = {
            "seen": seen,
            "outputs": [seen["output"], without["output"], broken_after["output"]],
            "failures": hook.failures,
        }
    return result


def served(model: str) -> dict[str, Any]:
    """The engine core in a process of its own, as vLLM runs it by default; it ends by SIGTERM right after its work."""
    llm = build(model, speculative_config=NGRAM)
    result = {"tokens": generate(llm), "metrics": metrics(llm)}
    end(llm)
    return result


SCENARIOS: dict[str, Callable[[str], dict[str, Any]]] = {
    function.__name__: function for function in (plain_and_ngram, corners, queued, faults, overhead, graphs, served)
}


if __name__ == "__main__":
    logging.getLogger("engine_hooks").addHandler(logging.NullHandler())  # faults are made in dozens
    _, scenarios, model_directory, result_file = sys.argv
    results = {name: SCENARIOS[name](model_directory) for name in scenarios.split(",")}
    Path(result_file).write_text(json.dumps(results))
