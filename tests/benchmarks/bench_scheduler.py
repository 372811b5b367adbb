"""What a decision costs, whether rounds leave anything behind, and how fast the simulator runs.

`make bench ARGS="--only scheduler"`. A round is one decision among sixteen candidates and one update, of a seeded
workload that takes every path: batches that change, drained rounds with completion feedback, a host that stumbles and
one that is slow for a while, refreshes. Times are the thread's own CPU time, since other work on the machine only adds.
"""

import random
import statistics
import sys
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from engine_hooks.contract.names import GraphKind, Purpose
from engine_hooks.cost_model.model import CostModel, Measurement
from engine_hooks.cost_model.registry import COST_MODELS, cost_model_named
from engine_hooks.scheduler.decision import BatchState
from engine_hooks.scheduler.graphs import Graph
from engine_hooks.scheduler.scheduler import Scheduler, SchedulerSettings
from engine_hooks.simulator.engine import SimulatedEngine
from engine_hooks.simulator.parameters import MS_NS, S_NS, Engine, Scenario, graphs_at
from tests.benchmarks.report import Result, show, table_of

P99_LIMIT_NS: Final = 40_000
CANDIDATES: Final = 16
LANES: Final = 32
GPU_NS: Final = 28 * MS_NS
WORKLOAD: Final = 10_007
"""Rounds until the workload begins anew; a prime, so that it falls differently each time."""
WARM_ROUNDS: Final = 1_000
SIMULATED_NS: Final = 120 * S_NS


class Round(NamedTuple):
    """What one round brings, whichever graph is chosen."""

    lanes: int
    jitter_ns: int
    gap_ns: int
    """GPU idle time before it, of a drained round."""
    feedback: bool
    after_idle: bool
    trials: tuple[int, ...]
    hits: tuple[int, ...]


def graphs() -> list[Graph]:
    """Plain decode and fifteen budgets."""
    budgets = range(40, 40 + 8 * (CANDIDATES - 1), 8)
    speculative = [Graph(f"P{budget}", GraphKind.SPECULATIVE, budget) for budget in budgets]
    return [Graph("decode", GraphKind.PLAIN_DECODE), *speculative]


def workload(seed: int = 1) -> list[Round]:
    """Nine rounds in ten at `LANES`; one in fifty drained; a stretch in which the host is slow in every round."""
    draw = random.Random(seed)
    return [_round(draw, host_is_slow=number % 1000 > 900) for number in range(WORKLOAD)]


def _round(draw: random.Random, host_is_slow: bool) -> Round:
    lanes = LANES if draw.random() < 0.9 else draw.randint(1, LANES)
    feedback = draw.random() < 0.02
    gap_ns = 60 * MS_NS if draw.random() < 0.002 else 600_000 if feedback else 8 * MS_NS if host_is_slow else 0
    hits = [lanes]
    for _ in range(3):
        hits.append(sum(draw.random() < 0.6 for _ in range(hits[-1])))
    return Round(
        lanes, draw.randrange(2 * MS_NS), gap_ns, feedback, draw.random() < 0.001, tuple(hits[:-1]), tuple(hits[1:])
    )


class Rounds:
    """A scheduler that has measured every candidate, its clock, and the rounds it is given in turn."""

    def __init__(self, model: CostModel) -> None:
        self.scheduler = Scheduler(graphs(), model, SchedulerSettings(calibration_executions=2))
        self._rounds = workload()
        self._number = 0
        self._now_ns = 0

    def __call__(self) -> None:
        """One round."""
        lanes, jitter_ns, gap_ns, feedback, after_idle, trials, hits = self._rounds[self._number % WORKLOAD]
        self._number += 1
        decision = self.scheduler.choose(BatchState(self._now_ns, lanes))
        gpu_ns = GPU_NS + jitter_ns
        wall_ns = gpu_ns + gap_ns
        self._now_ns += wall_ns
        self.scheduler.record(
            Measurement(
                decision.graph.name, gpu_ns, wall_ns, gap_ns > 0, feedback, decision.purpose, self._now_ns, after_idle,
                wall_ns + GPU_NS,
            ),
            trials if decision.purpose == Purpose.ORDINARY and decision.drafts.full else (),
            hits if decision.purpose == Purpose.ORDINARY and decision.drafts.full else (),
        )  # fmt: skip


def percentiles_ns(make: Callable[[], Callable[[], None]], rounds: int, repeats: int) -> tuple[float, float]:
    """Median and p99 of a round's CPU time, the cost of looking at the clock included.

    Equal calls give equal decisions, so each round is the same one in every repeat: it counts by the least it took.
    What is left is what the code takes, without the caches that other work on the machine empties.
    """
    least = [float("inf")] * rounds
    for _ in range(repeats):
        least = list(map(min, least, _taken_ns(make(), rounds)))
    cuts = statistics.quantiles(least, n=100)
    return cuts[49], cuts[98]


def _taken_ns(one_round: Callable[[], None], rounds: int) -> list[int]:
    clock = time.thread_time_ns
    for _ in range(WARM_ROUNDS):
        one_round()
    taken = []
    for _ in range(rounds):
        began_ns = clock()
        one_round()
        taken.append(clock() - began_ns)
    return taken


class Growth(NamedTuple):
    """What rounds left behind."""

    blocks: int
    """Memory blocks of the interpreter that are allocated afterwards and were not before."""
    resident_bytes: int


def growth(one_round: Callable[[], None], rounds: int, samples: int = 20) -> Growth:
    """How far memory rose above what it was once every window, batch shape and cache had been filled.

    The highest of samples spread over the rounds, so that what is let go at the end counts too.
    """
    for _ in range(2 * WORKLOAD):
        one_round()
    blocks, resident = [sys.getallocatedblocks()], [_resident_bytes()]
    for _ in range(samples):
        for _ in range(rounds // samples):
            one_round()
        blocks.append(sys.getallocatedblocks())
        resident.append(_resident_bytes())
    return Growth(max(blocks) - blocks[0], max(resident) - resident[0])


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def simulated_rounds_per_second(model: str, plain_ns: int, repeats: int) -> float:
    """Rounds that one core simulates in a second of CPU time, the best of repeats; nothing is emitted."""
    scenario = Scenario("bench", Engine(graph_gpu_ns=graphs_at(LANES, plain_ns=plain_ns)))
    rates = []
    for seed in range(repeats):
        engine = SimulatedEngine(scenario, cost_model_named(model), seed)
        engine.run(S_NS)
        before, started_ns = engine.totals.rounds, time.process_time_ns()
        engine.run(SIMULATED_NS)
        rates.append((engine.totals.rounds - before) * 1e9 / (time.process_time_ns() - started_ns))
    return max(rates)


def rounds_of(model: str) -> Rounds:
    return Rounds(cost_model_named(model))


def results(quick: bool) -> Iterable[Result]:
    """As `tests.benchmarks.report` asks for."""
    rounds, repeats, long_run = (4_000, 3, 100_000) if quick else (20_000, 7, 10_000_000)
    for model in COST_MODELS:
        row = partial(Result.of, unit="ns", n=rounds)
        p50, p99 = percentiles_ns(partial(rounds_of, model), rounds, repeats)
        yield row(f"scheduler: decision + update, {CANDIDATES} candidates, {model}, median", p50, None)
        yield row(f"scheduler: decision + update, {CANDIDATES} candidates, {model}, p99, against the limit", p99, P99_LIMIT_NS)  # fmt: skip
    for model in COST_MODELS:
        gained = growth(rounds_of(model), long_run)
        yield Result.of(f"scheduler: memory gained, {model}", gained.blocks, None, "blocks", long_run)
        yield Result.of(f"scheduler: resident memory gained, {model}", gained.resident_bytes, None, "bytes", long_run)
    for model in COST_MODELS:
        for kind, plain_ns in (("P128", 13_500_000), ("plain", 8_000_000)):
            rate = simulated_rounds_per_second(model, plain_ns, min(repeats, 5))
            yield Result.of(f"simulator: {kind} rounds a second, {model}", rate, None, "rounds/s", SIMULATED_NS // S_NS)


if __name__ == "__main__":
    show(table_of(results(quick=False), "What the scheduler costs, and the simulator with it"))
