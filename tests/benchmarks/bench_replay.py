"""How far the closed loop is off what a live engine of the same seed does: `make bench-replay`.

Every cell was stuck under `exposed_mean`; it is replayed under `drained_share`, and so is the live engine.
"""

import argparse
import statistics
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from rich.console import Console
from rich.table import Table

from engine_hooks.simulator.parameters import Scenario
from queries.record import CellExecutions
from tests.fixtures.stuck_cells import SCENARIOS, Outcome, outcome, stuck_cells, stuck_cells_with_history

MODEL = "drained_share"
SEEDS = range(60_000, 61_000)
Cells = Callable[[Scenario, Sequence[int], str], Iterator[tuple[int, CellExecutions, float]]]


def main() -> None:
    """Print a row for each scenario, with and without a history, and one for all."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--cells", type=int, default=20, help="stuck cells of each scenario")
    parser.add_argument("--runs", type=int, default=16, help="simulated runs of each kind")
    arguments = parser.parse_args()
    table = Table()
    for heading in ("scenario", "cells", "plain", "mean %", "median |%|", "90 % |%|", "within 1 %", "within its error"):
        table.add_column(heading, justify="left" if heading == "scenario" else "right")
    for title, cells in (("from start-up", stuck_cells), ("30 s of history", stuck_cells_with_history)):
        everything: list[Outcome] = []
        for scenario in SCENARIOS:
            found = list(outcomes(scenario, cells, arguments.cells, arguments.runs))
            everything += found
            table.add_row(scenario.name, *figures(found))
        table.add_row(f"all, {title}", *figures(everything), style="bold", end_section=True)
    Console(width=140).print(table)


def outcomes(scenario: Scenario, cells: Cells, count: int, runs: int) -> Iterator[Outcome]:
    """The first stuck cells of a scenario, replayed."""
    for seed, cell, live_tokens_per_s in islice(cells(scenario, SEEDS, MODEL), count):
        yield outcome(scenario.name, seed, cell, live_tokens_per_s, model=MODEL, runs=runs)


def figures(found: Sequence[Outcome]) -> list[str]:
    """A row of the table."""
    if not found:
        return ["0"]
    off = sorted(abs(one.off_percent) for one in found)
    return [
        str(len(found)),
        f"{statistics.fmean(one.plain_fraction for one in found):.2f}",
        f"{statistics.fmean(one.off_percent for one in found):+.2f}",
        f"{statistics.median(off):.2f}",
        f"{off[int(0.9 * (len(off) - 1))]:.2f}",
        f"{sum(one <= 1 for one in off) / len(off):.0%}",
        f"{sum(abs(one.off_percent) <= one.error_percent for one in found) / len(found):.0%}",
    ]


if __name__ == "__main__":
    main()
