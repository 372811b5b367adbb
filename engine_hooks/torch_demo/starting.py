"""Putting the demo engine together."""

from collections.abc import Callable
from typing import Final

import torch

from engine_hooks.adapters.torch_cpu.device_queue import DeviceQueue
from engine_hooks.contract.execution import GraphExecution
from engine_hooks.cost_model.model import CostModel
from engine_hooks.torch_demo.engine import SpeculativeEngine
from engine_hooks.torch_demo.host_delay import HostDelays
from engine_hooks.torch_demo.lanes import Lanes
from engine_hooks.torch_demo.model import ModelShape, TinyTransformer
from engine_hooks.torch_demo.tuning import tuned

LANES: Final = 4
TEMPERATURE: Final = 1.5
"""Of sampling: draft heads are right about three times in four."""


def engine_on(
    queue: DeviceQueue,
    cost_model: CostModel,
    record: Callable[[GraphExecution], object],
    *,
    seed: int,
    delays: HostDelays,
    cell: str = "",
) -> SpeculativeEngine:
    """A tuned engine, ready to run, on one core. Takes a second or two.

    Raises:
        DemoError: the machine is too slow to measure.
    """
    torch.set_num_threads(1)
    lanes = Lanes(TinyTransformer(ModelShape(), seed), LANES, TEMPERATURE)
    tuning = tuned(lanes, queue, seed)
    labels = {"cell_id": cell}
    return SpeculativeEngine(lanes, queue, tuning, cost_model, record, seed=seed, delays=delays, labels=labels)
