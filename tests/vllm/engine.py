"""Real vLLM on CPU, run by vLLM's own interpreter: `python -m tests.vllm.engine SCENARIO MODEL RESULT`.

Each scenario writes what it saw as JSON; the tests compare that with what the collector stored.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

os.environ |= {
    "HF_HUB_OFFLINE": "1",
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
    return LLM(model, **(defaults | settings))


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


# ---- scenarios


def plain_and_ngram(model: str) -> dict[str, Any]:
    """In this process, hooks on or off by the environment."""
    return {"plain": run(model), "ngram": run(model, speculative_config=NGRAM)}


SCENARIOS: dict[str, Callable[[str], dict[str, Any]]] = {"plain_and_ngram": plain_and_ngram}


if __name__ == "__main__":
    _, scenario, model, result = sys.argv
    Path(result).write_text(json.dumps(SCENARIOS[scenario](model)))
