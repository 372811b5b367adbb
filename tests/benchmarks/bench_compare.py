"""How often `compare` is right: 1,000 tables of arms that do not differ, 1,000 with a true +0.9 %, per kind of noise.

`make bench-compare`. The noise is that of simulated cells of the published experiment, 30 s each.
"""

import argparse
import functools
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from multiprocessing import get_context
from typing import NamedTuple

import numpy as np
from rich.console import Console

from engine_hooks.simulator.experiment import AFTER, BEFORE, PACKAGES, experiment_cells
from engine_hooks.simulator.many_cells import CellTask, run_cells, usable_cores
from queries.compare.comparison import Verdict, compared
from queries.compare.shifts import pairs_needed
from tests.fixtures.arm_tables import Noise, Table, cells_of_table

CONSOLE = Console(highlight=False, width=160)
REPLICATES = 5
"""Of the experiment: 50 cells of each package under each model."""
GAIN_PERCENT = 0.9
DECIDED = (Verdict.BETTER, Verdict.WORSE)
ERRS_AT_MOST = 0.05


class Judged(NamedTuple):
    """The verdicts of one table."""

    rows: tuple[Verdict, ...]
    """Of the groups, and of all together last."""


def simulated_noises(jobs: int) -> list[Noise]:
    """Noise for each package: `drained_share` cells, and what the same cells lose under `exposed_mean`."""
    planned = [cell for replicate in range(REPLICATES) for cell in experiment_cells(replicate)]
    results = run_cells([CellTask(cell.scenario, cell.policy, cell.seed) for cell in planned], jobs, lambda: None)
    rates = {(cell.policy, cell.seed): ran.tokens_per_second for cell, ran in zip(planned, results, strict=True)}
    seeds = {package: sorted({cell.seed for cell in planned if cell.package == package}) for package in PACKAGES}
    return [
        Noise(
            np.array([rates[AFTER, seed] for seed in of_package]),
            np.array([rates[BEFORE, seed] / rates[AFTER, seed] for seed in of_package]),
        )
        for of_package in seeds.values()
    ]


def judge(table: Table, seed: int) -> Judged:
    """One table's verdicts."""
    return Judged(tuple(row.verdict for row in compared(cells_of_table(table, seed)).rows))


def judged_tables(pool: Executor, table: Table, count: int, seed: int) -> list[Judged]:
    """Many tables, on many cores."""
    one: Callable[[int], Judged] = functools.partial(judge, table)
    seeds = range(seed * 1_000_000, seed * 1_000_000 + count)
    return list(pool.map(one, seeds, chunksize=25))


def rates(verdicts: Sequence[Verdict]) -> str:
    """Share of each verdict, in %."""
    counts = Counter(verdicts)
    return "  ".join(f"{verdict} {100 * counts[verdict] / len(verdicts):5.1f} %" for verdict in Verdict)


def error_rate(tables: Sequence[Judged]) -> float:
    """Share of tables with any row decided."""
    return sum(any(verdict in DECIDED for verdict in table.rows) for table in tables) / len(tables)


def report(name: str, tables: Sequence[Judged]) -> None:
    """Print the rates of one kind of table."""
    CONSOLE.print(name)
    CONSOLE.print(f"  all groups together   {rates([table.rows[-1] for table in tables])}")
    groups = [verdict for table in tables for verdict in table.rows[:-1] or table.rows]
    CONSOLE.print(f"  each group            {rates(groups)}")
    CONSOLE.print(f"  any row decided       {100 * error_rate(tables):5.1f} % of {len(tables):,} tables")


def power_check(pool: Executor, noise: Noise, seed: int, count: int) -> None:
    """Whether as many pairs as the estimate asks for find the shift four times out of five."""
    pairs_of = np.random.default_rng(seed).choice(noise.bases, (2, 100_000))
    sd = float(np.std(200 * (pairs_of[1] - pairs_of[0]) / pairs_of.sum(axis=0)))
    needed = pairs_needed(GAIN_PERCENT, sd, tests=1) or 0
    quiet = Noise(noise.bases, np.ones(1))
    found = judged_tables(pool, Table([quiet], GAIN_PERCENT, shares_conditions=False, pairs=[needed]), count, seed)
    share = sum(table.rows[-1] is Verdict.BETTER for table in found) / count
    CONSOLE.print(
        f"power: {needed} pairs (sd of a pair {sd:.2f} %) find +{GAIN_PERCENT} % in {100 * share:.0f} % of {count} tables"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=usable_cores())
    chosen = parser.parse_args()
    began = time.monotonic()
    noises = simulated_noises(chosen.jobs)
    CONSOLE.print(
        f"{2 * len(PACKAGES) * 10 * REPLICATES} simulated cells in {time.monotonic() - began:.1f} s, seed {chosen.seed}"
    )
    failures = []
    with ProcessPoolExecutor(chosen.jobs, get_context("spawn")) as pool:
        for shares, kind in ((True, "pairs meet the same conditions"), (False, "every cell is on its own")):
            for gain in (0.0, GAIN_PERCENT):
                tables = judged_tables(pool, Table(noises, gain, shares), chosen.tables, chosen.seed)
                report(f"{'A/A' if gain == 0 else f'true +{gain} %'}, {kind}", tables)
                if gain == 0 and error_rate(tables) > ERRS_AT_MOST:
                    failures.append(kind)
        power_check(pool, noises[0], chosen.seed, max(100, chosen.tables // 5))
    CONSOLE.print(f"in {time.monotonic() - began:.0f} s")
    if failures:
        raise SystemExit(f"A/A tables are decided in more than {ERRS_AT_MOST:.0%} of cases: {'; '.join(failures)}")


if __name__ == "__main__":
    main()
