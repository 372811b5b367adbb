"""The diagnosis against simulated cells whose cause is known: `make bench-findings`.

Cells of fifteen kinds, drawn with a seed, half of them recorded in mid-run and half of those without what was before.
Prints precision and recall of each kind of finding, and the confusion matrix of the labels; ends with 1 if a
threshold is missed. `--json FILE` writes the same figures.
"""

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final, NamedTuple

from rich.console import Console
from rich.progress import track
from rich.table import Table

from engine_hooks.simulator.many_cells import usable_cores
from queries.findings.diagnosis import diagnose
from queries.findings.findings import Kind
from tests.fixtures.simulated_causes import CAUSES
from tests.fixtures.simulated_cells import simulated

CELLS: Final = 2000
REQUIRED: Final = {Kind.ESTIMATE_INFLATION: 0.98}
REQUIRED_OF_OTHERS: Final = 0.95


class Outcome(NamedTuple):
    """One cell, diagnosed."""

    drawn: Kind
    seed: int
    true: frozenset[Kind]
    true_label: Kind
    found: frozenset[Kind]
    found_label: Kind
    true_loss_percent: float
    found_loss_percent: float
    called_stuck_by_fault_though_right: bool
    diagnosis_ms: float
    redrawn: int


def outcome(task: tuple[Kind, int]) -> Outcome:
    """Simulate and diagnose one cell."""
    kind, seed = task
    cell = simulated(kind, seed)
    started = time.perf_counter()
    diagnosis = diagnose(cell.record)
    took_ms = 1e3 * (time.perf_counter() - started)
    return Outcome(
        kind,
        seed,
        cell.labels,
        cell.label,
        frozenset(finding.kind for finding in diagnosis.findings),
        diagnosis.label,
        cell.loss_percent,
        diagnosis.expected_loss_percent or 0.0,
        Kind.PLAIN_RIGHT in cell.labels and diagnosis.stuck_by_fault,
        took_ms,
        cell.redrawn,
    )


def outcomes(cells: int, first_seed: int, jobs: int) -> Iterator[Outcome]:
    """The cells, kinds in turn."""
    kinds = list(CAUSES)
    tasks = [(kinds[n % len(kinds)], first_seed + n // len(kinds)) for n in range(cells)]
    if jobs == 1:
        yield from map(outcome, tasks)
        return
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        yield from pool.map(outcome, tasks, chunksize=8)


class Score(NamedTuple):
    """How well one kind is found. A share of nothing is 1."""

    true: int
    found: int
    both: int

    @property
    def precision(self) -> float:
        return self.both / self.found if self.found else 1.0

    @property
    def recall(self) -> float:
        return self.both / self.true if self.true else 1.0


def scores(results: list[Outcome]) -> dict[Kind, Score]:
    """By kind of finding; `healthy` is a label without any main finding."""
    return {kind: _score(kind, results) for kind in Kind}


def _score(kind: Kind, results: list[Outcome]) -> Score:
    if kind == Kind.HEALTHY:
        pairs = [(one.true_label == kind, one.found_label == kind) for one in results]
    else:
        pairs = [(kind in one.true, kind in one.found) for one in results]
    return Score(sum(t for t, _ in pairs), sum(f for _, f in pairs), sum(t and f for t, f in pairs))


def missed(by_kind: dict[Kind, Score]) -> list[str]:
    """Thresholds that were missed, in words."""
    words = []
    for kind, score in by_kind.items():
        required = REQUIRED.get(kind, REQUIRED_OF_OTHERS)
        for name, value in (("precision", score.precision), ("recall", score.recall)):
            if value < required:
                words.append(f"{name} of {kind} is {value:.3f}, below {required}")
    return words


def confusion(results: list[Outcome]) -> dict[str, dict[str, int]]:
    """Cells by true and found label."""
    counts = Counter((str(one.true_label), str(one.found_label)) for one in results)
    labels = sorted({label for pair in counts for label in pair}, key=list(map(str, Kind)).index)
    return {true: {found: counts[true, found] for found in labels} for true in labels}


def summary(results: list[Outcome]) -> dict[str, Any]:
    """Every figure, as plain data."""
    times = sorted(one.diagnosis_ms for one in results)
    errors = sorted(abs(one.true_loss_percent - one.found_loss_percent) for one in results)
    by_kind = scores(results)
    return {
        "cells": len(results),
        "redrawn": sum(one.redrawn for one in results),
        "kinds": {
            str(kind): {**score._asdict(), "precision": score.precision, "recall": score.recall}
            for kind, score in by_kind.items()
        },
        "confusion": confusion(results),
        "right_in_every_kind": sum(one.true == one.found for one in results),
        "called_stuck_by_fault_though_plain_was_right": sum(one.called_stuck_by_fault_though_right for one in results),
        "loss_error_points": {"median": errors[len(errors) // 2], "p90": errors[int(0.9 * len(errors))]},
        "diagnosis_ms": {"median": times[len(times) // 2], "p99": times[int(0.99 * len(times))]},
        "wrong": [
            {"drawn": str(o.drawn), "seed": o.seed, "true": sorted(o.true), "found": sorted(o.found)}
            for o in results
            if o.true != o.found
        ],
        "missed": missed(by_kind),
    }


def show(figures: dict[str, Any], console: Console) -> None:
    """The figures for the eye."""
    table = Table("finding", "true", "found", "both", "precision", "recall", title=f"{figures['cells']} cells")
    for kind, score in figures["kinds"].items():
        counts = (str(score[name]) for name in ("true", "found", "both"))
        table.add_row(kind, *counts, f"{score['precision']:.3f}", f"{score['recall']:.3f}")
    console.print(table)
    matrix = Table("true label \\ found", *(name.replace("_", " ") for name in figures["confusion"]))
    for true, row in figures["confusion"].items():
        matrix.add_row(true, *(str(count) if count else "." for count in row.values()))
    console.print(matrix)
    for one in figures["wrong"]:
        console.print(f"{one['drawn']} {one['seed']}: true {', '.join(one['true'])}; found {', '.join(one['found'])}")
    plain = {name: value for name, value in figures.items() if name not in {"kinds", "confusion", "wrong"}}
    console.print_json(data=plain)


def main() -> int:
    """Run it; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, default=CELLS)
    parser.add_argument("--seed", type=int, default=5000, help="first seed")
    parser.add_argument("--jobs", type=int, default=usable_cores())
    parser.add_argument("--json", type=Path, help="write the figures here")
    given = parser.parse_args()
    console = Console(width=220)
    running = outcomes(given.cells, given.seed, given.jobs)
    results = list(track(running, "Cells", total=given.cells, console=Console(stderr=True)))
    figures = summary(results)
    show(figures, console)
    if given.json:
        given.json.write_text(json.dumps(figures, indent=1))
    return 1 if figures["missed"] else 0


if __name__ == "__main__":
    sys.exit(main())
