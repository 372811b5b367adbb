"""Figures of one run, beside what they are held against: the rows of `build/bench.json` and of its tables.

A benchmark is a module `tests/benchmarks/bench_NAME.py` with a function `results(quick: bool) -> Iterable[Result]`;
`quick` asks for a short run. `tests/benchmarks/__main__.py` runs it, in a process of its own, once its name stands there.
"""

import json
import os
import platform
from collections.abc import Iterable
from importlib import import_module
from importlib.metadata import version
from itertools import starmap
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

from rich.console import Console
from rich.table import Table

BENCH_JSON: Final = Path("build/bench.json")


class Result(NamedTuple):
    """One figure, and its reference: a rival measured in the same run, or a limit that was set."""

    name: str
    """Unique together with `n`: `TOPIC: WHAT, against REFERENCE`."""
    ours: float
    reference: float | None
    """In the same unit; `None` where there is nothing to hold it against."""
    ratio: float | None
    """`ours / reference`."""
    unit: str
    n: int
    """Size of the data, or how many were measured."""
    versions: dict[str, str]

    @classmethod
    def of(cls, name: str, ours: float, reference: float | None, unit: str, n: int, *packages: str) -> Self:
        """A row with its ratio worked out and the versions of `packages` looked up."""
        ratio = ours / reference if reference else None
        return cls(name, _rounded(ours), _rounded(reference), _rounded(ratio), unit, n, versions(*packages))


def versions(*packages: str) -> dict[str, str]:
    """What figures hang on: the machine, Python, and the distributions named."""
    machine = f"{platform.machine()}, {os.cpu_count()} cores"
    return {"machine": machine, "python": platform.python_version(), **{name: version(name) for name in packages}}


def measured(topic: str, quick: bool) -> list[Result]:
    """The rows of `bench_TOPIC`."""
    return list(import_module(f"tests.benchmarks.bench_{topic}").results(quick))


def read(file: Path) -> list[Result]:
    """The rows of a file that `merge` wrote."""
    return [Result(**row) for row in json.loads(file.read_bytes())]


def merge(results: Iterable[Result], file: Path = BENCH_JSON) -> None:
    """Put rows into a file, each in place of the one of the same name and size."""
    old = read(file) if file.exists() else []
    rows = {(row.name, row.n): row for row in (*old, *results)}
    file.parent.mkdir(parents=True, exist_ok=True)
    unfinished = file.with_suffix(".unfinished")
    unfinished.write_text(json.dumps([row._asdict() for row in rows.values()], indent=2) + "\n")
    unfinished.replace(file)


def table_of(results: Iterable[Result], title: str) -> Table:
    """Rows as a table, with the versions they share below it."""
    rows = list(results)
    shared = dict(pair for row in rows for pair in row.versions.items())
    table = Table(title=title, caption=", ".join(starmap("{} {}".format, shared.items())))
    for column in ("what", "n", "ours", "reference", "ours / reference", "unit"):
        table.add_column(column, justify="left" if column in {"what", "unit"} else "right")
    for row in rows:
        table.add_row(row.name, f"{row.n:,}", *map(shown, (row.ours, row.reference, row.ratio)), row.unit)
    return table


def comparison(before: Iterable[Result], after: Iterable[Result], names: tuple[str, str]) -> Table:
    """Two runs side by side, with the ratio of the second to the first; what only one has stays in."""
    runs = [{(row.name, row.n): row for row in run} for run in (before, after)]
    table = Table(title=f"{names[1]} against {names[0]}")
    for column in ("what", "n", *names, "ratio", "unit"):
        table.add_column(column, justify="left" if column in {"what", "unit"} else "right")
    for key in dict.fromkeys((*runs[0], *runs[1])):
        first, second = (run.get(key) for run in runs)
        ratio = second.ours / first.ours if first and second and first.ours else None
        figures = (first and first.ours, second and second.ours, ratio)
        table.add_row(key[0], f"{key[1]:,}", *map(shown, figures), (first or second or _NONE).unit)
    return table


def show(table: Table) -> None:
    """Print a table, as wide as it needs to be."""
    Console(width=160).print(table)


def shown(figure: float | None) -> str:
    """A figure for the eye: four digits that count."""
    if figure is None:
        return ""
    return f"{figure:,.0f}" if abs(figure) >= 1000 else f"{figure:.4g}"


def _rounded(figure: float | None) -> Any:
    return None if figure is None else float(f"{figure:.6g}")


_NONE: Final = Result("", 0, None, None, "", 0, {})
