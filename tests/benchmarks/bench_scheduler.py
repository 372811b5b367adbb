"""What a decision costs, and how fast the simulator runs with the scheduler in it.

`python -m tests.benchmarks.bench_scheduler [--json FILE]`. Every figure is the best of repeats, by the process's own
CPU time: other work on the machine only ever adds.
"""

import argparse
import json
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from engine_hooks.contract.names import GraphKind, Purpose
from engine_hooks.cost_model.model import Measurement
from engine_hooks.cost_model.registry import COST_MODELS, cost_model_named
from engine_hooks.scheduler.decision import BatchState
from engine_hooks.scheduler.graphs import Graph
from engine_hooks.scheduler.scheduler import Scheduler, SchedulerSettings
from engine_hooks.simulator.engine import SimulatedEngine
from engine_hooks.simulator.parameters import MS_NS, S_NS, Engine, Scenario, graphs_at

LANES = 32
CANDIDATES = 16
ROUND_NS = 28_000_000
ROUNDS = 2_000
REPEATS = 15
SIMULATED_NS = 120 * S_NS
TRIALS, HITS = (32, 20, 12), (20, 12, 7)


def best_ns(run: Callable[[int], object], rounds: int = ROUNDS) -> float:
    """CPU time of one round, the best of `REPEATS`."""
    run(rounds)
    times = []
    for _ in range(REPEATS):
        started_ns = time.process_time_ns()
        run(rounds)
        times.append((time.process_time_ns() - started_ns) / rounds)
    return min(times)


def empty() -> None:
    """What every Python call costs."""


def empty_calls(rounds: int) -> None:
    for _ in range(rounds):
        empty()


def graphs() -> list[Graph]:
    """Plain decode and fifteen budgets."""
    budgets = range(40, 40 + 8 * (CANDIDATES - 1), 8)
    speculative = [Graph(f"P{budget}", GraphKind.SPECULATIVE, budget) for budget in budgets]
    return [Graph("decode", GraphKind.PLAIN_DECODE), *speculative]


def measured_scheduler(model: str) -> Scheduler:
    """A scheduler whose every candidate has been measured as often as its windows are long."""
    scheduler = Scheduler(graphs(), cost_model_named(model), SchedulerSettings(calibration_executions=0))
    for turn in range(20):
        for graph in scheduler.graphs:
            gpu_ns = 20 * MS_NS + 65_000 * (graph.verification_budget or 0) + turn * 1_000
            wall_ns, now_ns = gpu_ns + 600_000, turn * ROUND_NS
            scheduler.record(
                Measurement(graph.name, gpu_ns, wall_ns, True, False, Purpose.ORDINARY, now_ns, False, wall_ns)
            )
    return scheduler


def decide_and_update(model: str) -> Callable[[int], None]:
    """Rounds of one decision and one update each, the update of whichever graph was chosen, on a clock that moves."""
    scheduler = measured_scheduler(model)
    clock_ns = 20 * ROUND_NS

    def run(rounds: int) -> None:
        nonlocal clock_ns
        for number in range(rounds):
            decision = scheduler.choose(BatchState(clock_ns, LANES))
            gpu_ns = ROUND_NS + number * 37 % 10_007
            measurement = Measurement(
                decision.graph.name, gpu_ns, gpu_ns, False, False, decision.purpose, clock_ns, False, 2 * gpu_ns
            )
            scheduler.record(measurement, TRIALS, HITS)
            clock_ns += ROUND_NS

    return run


def simulated_rounds_per_second(model: str, plain_ns: int) -> float:
    """Rounds that one core simulates in a second of CPU time, the best of five; nothing is emitted."""
    scenario = Scenario("bench", Engine(graph_gpu_ns=graphs_at(LANES, plain_ns=plain_ns)))
    rates = []
    for seed in range(5):
        engine = SimulatedEngine(scenario, cost_model_named(model), seed)
        engine.run(S_NS)
        before, started_ns = engine.totals.rounds, time.process_time_ns()
        engine.run(SIMULATED_NS)
        rates.append((engine.totals.rounds - before) * 1e9 / (time.process_time_ns() - started_ns))
    return max(rates)


def measure() -> dict[str, Any]:
    """Every figure, by its name."""
    return {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "candidates": CANDIDATES,
        "empty_call_ns": best_ns(empty_calls),
        "decision_and_update_ns": {model: best_ns(decide_and_update(model)) for model in COST_MODELS},
        "rounds_per_second_p128": {m: simulated_rounds_per_second(m, 13_500_000) for m in COST_MODELS},
        "rounds_per_second_plain": {m: simulated_rounds_per_second(m, 8_000_000) for m in COST_MODELS},
    }


def show(figures: dict[str, Any]) -> None:
    """Print the figures as a table."""
    table = Table(title=f"Scheduler, Python {figures['python']} on {figures['machine']}, one core")
    for column in ("model", f"decision + update, {CANDIDATES} candidates", "P128 rounds/s", "plain rounds/s"):
        table.add_column(column, justify="left" if column == "model" else "right")
    for model in COST_MODELS:
        table.add_row(
            model,
            f"{figures['decision_and_update_ns'][model] / 1000:.2f} us",
            f"{figures['rounds_per_second_p128'][model]:,.0f}",
            f"{figures['rounds_per_second_plain'][model]:,.0f}",
        )
    table.add_row("an empty Python call", f"{figures['empty_call_ns'] / 1000:.3f} us", "", "")
    Console().print(table)


def main() -> None:
    """Measure, print, and write JSON if asked to."""
    parser = argparse.ArgumentParser(description="What a decision costs, and how fast the simulator runs.")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    arguments = parser.parse_args()
    figures = measure()
    show(figures)
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
