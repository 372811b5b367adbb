"""Recording a PyTorch engine on CUDA."""

import time
from collections.abc import Callable
from typing import Any

import torch

from engine_hooks.adapters.device.executions import DeviceExecutions, Observed
from engine_hooks.adapters.device.tracker import TrackerSettings
from engine_hooks.adapters.torch_cuda.event_source import CudaEventSource
from engine_hooks.contract.execution import EngineResource, GraphExecution


def cuda_executions(
    record: Callable[[GraphExecution], object],
    device: Any = None,
    *,
    settings: TrackerSettings | None = None,
    observed: Observed | None = None,
    clock_ns: Callable[[], int] = time.monotonic_ns,
) -> DeviceExecutions[torch.cuda.Event]:
    """The executions of one CUDA device. `graph(…)` takes a `torch.cuda.CUDAGraph`.

    Args:
        record: Takes each execution: `Recorder.record`.
        device: As torch names devices; `None` is the current one.
        settings: Bounds of the pool of events.
        observed: As in `DeviceExecutions`.
        clock_ns: The host's monotonic clock.

    Raises what torch raises where there is no such device.
    """
    chosen = torch.device("cuda", torch.cuda.current_device()) if device is None else torch.device(device)
    source = CudaEventSource(chosen, clock_ns)
    return DeviceExecutions(source, record, settings=settings, observed=observed, clock_ns=clock_ns)


def cuda_resource(resource: EngineResource, device: Any = None) -> EngineResource:
    """The same engine instance, with its GPU's id and name, and with what its GPU times contain.

    `engine.drained_gpu_time = with launch latency`: on a drained queue the start event fires at
    once, and the launch that follows is inside the interval.
    """
    properties = torch.cuda.get_device_properties(device)
    attributes = {
        "gpu_name": properties.name,
        "cuda_version": str(torch.version.cuda),
        "drained_gpu_time": "with launch latency",
        **resource.engine_attributes,
    }
    return resource._replace(
        gpu_ids=resource.gpu_ids or (str(getattr(properties, "uuid", properties.name)),), engine_attributes=attributes
    )
