"""House rules that a machine can hold: short functions, files of one concept. The limits only ever tighten."""

import ast
import statistics
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("engine_hooks", "collector", "queries", "dashboards")
FUNCTION_LINES_MAX = 70
FUNCTION_LINES_MEDIAN = 12
FILE_LINES_MAX = 500


def product_files() -> list[Path]:
    return [ROOT / "tachograph.py", *(path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py")))]


def functions(path: Path) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, (node.end_lineno or node.lineno) - node.lineno + 1


def test_test_files_are_of_one_concept_too() -> None:
    lengths = {path.name: len(path.read_text().splitlines()) for path in (ROOT / "tests").rglob("*.py")}
    assert {name: lines for name, lines in lengths.items() if lines > FILE_LINES_MAX} == {}


@pytest.mark.parametrize("path", product_files(), ids=lambda path: str(path.relative_to(ROOT)))
def test_files_and_functions_stay_short(path: Path) -> None:
    too_long = {name: lines for name, lines in functions(path) if lines > FUNCTION_LINES_MAX}
    assert not too_long
    assert len(path.read_text().splitlines()) <= FILE_LINES_MAX


def test_the_median_function_is_short() -> None:
    lengths = [lines for path in product_files() for _, lines in functions(path)]
    assert statistics.median(lengths) <= FUNCTION_LINES_MEDIAN
