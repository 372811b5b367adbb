"""The engine instance that a scheduler of SGLang is."""

import os
import socket
import time
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from opentelemetry.sdk.resources import OTELResourceDetector

from engine_hooks.adapters.sglang.targets import SETTINGS
from engine_hooks.contract import names
from engine_hooks.contract.execution import EngineResource
from engine_hooks.contract.span import engine_attributes


def resource_of(server_args: Any, data_parallel_rank: int) -> EngineResource:
    """Describes the engine by its `ServerArgs`. A setting that a version of SGLang does not have is left out.

    Service name, host name, package, recipe and anything of one's own under `engine.` are taken from
    `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` where these name them. The instance is ours:
    several processes of one deployment share these variables.
    """
    given = OTELResourceDetector().detect().attributes
    host = socket.gethostname()
    served = str(_setting(server_args, "served_model_name") or _setting(server_args, "model_path") or "")
    return EngineResource(
        service_instance_id=f"{host}-{os.getpid()}-{time.time_ns() // 1_000_000}-dp{data_parallel_rank}",
        service_name=str(given.get(names.SERVICE_NAME, served)),
        host_name=str(given.get(names.HOST_NAME, host)),
        engine_name="sglang",
        engine_version=_version(),
        engine_package=str(given.get(names.ENGINE_PACKAGE, served)),
        engine_recipe=str(given.get(names.ENGINE_RECIPE, _recipe(server_args))),
        engine_tensor_parallel=_setting(server_args, "tp_size"),
        gpu_ids=tuple(filter(None, os.environ.get("CUDA_VISIBLE_DEVICES", "").split(","))),
        engine_attributes={**dict(_settings(server_args, data_parallel_rank)), **_own(given)},
    )


def _own(given: Mapping[str, Any]) -> dict[str, str]:
    return dict(engine_attributes(given))


def _settings(server_args: Any, data_parallel_rank: int) -> Iterator[tuple[str, str]]:
    yield "data_parallel_rank", str(data_parallel_rank)
    for name, setting in SETTINGS.items():
        value = _setting(server_args, setting)
        if value is not None:
            yield name, str(value).lower() if isinstance(value, bool) else str(value)


def _recipe(server_args: Any) -> str:
    method = _setting(server_args, "speculative_algorithm")
    if not method:
        return "no-speculation"
    tokens = _setting(server_args, "speculative_num_draft_tokens")
    return f"{method}-{tokens}".lower() if tokens else str(method).lower()


def _setting(server_args: Any, name: str) -> Any:
    return getattr(server_args, name, None)


def _version() -> str:
    try:
        return version("sglang")
    except PackageNotFoundError:
        return ""
