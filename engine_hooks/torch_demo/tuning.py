"""Start-up: what each verification budget costs and gives on this machine, and which of them is offered."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate
from operator import mul
from typing import Final, NamedTuple

from engine_hooks.adapters.torch_cpu.device_queue import DeviceQueue
from engine_hooks.scheduler.acceptance import depth_counts
from engine_hooks.scheduler.graphs import DRAFTS_PER_LANE_MAX
from engine_hooks.torch_demo.errors import DemoError
from engine_hooks.torch_demo.lanes import Lanes
from engine_hooks.torch_demo.requests import requests

ROUNDS: Final = 30
"""Measured rounds of each budget, one budget after another so that all meet the same machine."""
ACCEPTANCE_ROUNDS: Final = 50
WITHIN_S: Final = 30.0
GAIN_WANTED: Final = 1.5
"""Tokens per time of the offered budget over those of plain decode.

Close enough to a tie for one stumble of 60 ms to turn it, which makes a round of 3 ms look
four times as dear to `exposed_mean`; far enough for the noise of a shared machine not to.
"""


class Tuning(NamedTuple):
    """What was measured, and what is offered to the scheduler."""

    drafts: int
    """Draft tokens a lane of the offered speculative graph."""
    gain: float
    """Its tokens per time over plain decode's."""
    acceptance: tuple[float, ...]
    """By depth: drafts accepted of those whose predecessors were."""
    gpu_times_ns: tuple[int, ...]
    """By draft tokens a lane, 0 of them first: what a round takes."""


def tuned(lanes: Lanes, queue: DeviceQueue, seed: int) -> Tuning:
    """Run every budget on the queue and choose the one whose gain is nearest to `GAIN_WANTED`.

    Raises:
        DemoError: the machine is too slow to measure.
    """
    acceptance = _acceptance(lanes, queue, seed)
    gpu_times_ns = _gpu_times_ns(lanes, queue)
    gains = gains_of(acceptance, gpu_times_ns)
    drafts = min(range(1, len(gains)), key=lambda k: abs(math.log(gains[k] / GAIN_WANTED)))
    return Tuning(drafts, gains[drafts], acceptance, gpu_times_ns)


def gains_of(acceptance: Sequence[float], gpu_times_ns: Sequence[int]) -> list[float]:
    """By draft tokens a lane: tokens per time over those of plain decode."""
    tokens = accumulate(accumulate(acceptance, mul, initial=1.0))
    return [expected * gpu_times_ns[0] / time_ns for expected, time_ns in zip(tokens, gpu_times_ns, strict=True)]


def _acceptance(lanes: Lanes, queue: DeviceQueue, seed: int) -> tuple[float, ...]:
    supply = requests(seed, lanes.model.shape.vocabulary, 1)
    for lane, request in zip(range(lanes.count), supply, strict=False):
        _run(queue, partial(lanes.prefill, lane, request.prompt, request.seed))
    trials, hits = [0] * DRAFTS_PER_LANE_MAX, [0] * DRAFTS_PER_LANE_MAX
    lanes.outcomes.clear()
    for _ in range(ACCEPTANCE_ROUNDS):
        _run(queue, partial(lanes.decode, DRAFTS_PER_LANE_MAX))
        counts = depth_counts([DRAFTS_PER_LANE_MAX] * lanes.count, lanes.outcomes.popleft().accepted)
        for depth, (tried, hit) in enumerate(zip(*counts, strict=True)):
            trials[depth] += tried
            hits[depth] += hit
    # One trial more, half of it a hit: a depth that was hardly ever reached is not believed to be certain.
    return tuple((hit + 0.5) / (tried + 1) for tried, hit in zip(trials, hits, strict=True))


def _gpu_times_ns(lanes: Lanes, queue: DeviceQueue) -> tuple[int, ...]:
    """Nearly the fastest of each: what else the machine does only ever adds."""
    times_ns: list[list[int]] = [[] for _ in range(DRAFTS_PER_LANE_MAX + 1)]
    for _ in range(ROUNDS):
        for drafts, measured in enumerate(times_ns):
            measured.append(_run(queue, partial(lanes.decode, drafts)))
    lanes.outcomes.clear()
    return tuple(sorted(measured)[ROUNDS // 10] for measured in times_ns)


def _run(queue: DeviceQueue, work: Callable[[], object]) -> int:
    """One piece of work, alone; its processor time in ns."""
    start, end = queue.new_event(), queue.new_event()
    queue.record(start)
    queue.submit(work)
    queue.record(end)
    if not end.wait(WITHIN_S):
        raise DemoError(f"one round took more than {WITHIN_S:.0f} s: the machine is too slow for this demo")
    return end.fired_thread_ns - start.fired_thread_ns
