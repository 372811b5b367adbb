"""Attribute names stand in `engine_hooks.contract.names` and nowhere else in the product's Python."""

import ast
from collections.abc import Iterator
from pathlib import Path

from engine_hooks.contract import names
from engine_hooks.contract.attributes import RESOURCE_ATTRIBUTES, SPAN_ATTRIBUTES

ROOT = Path(__file__).parents[2]
ROOMS = ("engine_hooks", "collector", "queries", "dashboards")
HOME = ROOT / "engine_hooks/contract/names.py"

FORBIDDEN = {attribute.name for attribute in (*SPAN_ATTRIBUTES, *RESOURCE_ATTRIBUTES)} | {names.SPAN_NAME_PREFIX}


def product_files() -> Iterator[Path]:
    yield ROOT / "tachograph.py"
    for room in ROOMS:
        yield from (ROOT / room).rglob("*.py")


def literals(source: str) -> Iterator[tuple[int, str]]:
    """The text of every string that is no docstring, with its line."""
    tree = ast.parse(source)
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.lineno, node.value


def is_forbidden(literal: str) -> bool:
    """An attribute's name, or a longer text that quotes one, as SQL does."""
    return literal in FORBIDDEN or any(f"'{name}'" in literal or f'"{name}"' in literal for name in FORBIDDEN)


def test_no_attribute_name_is_written_twice() -> None:
    offences = [
        f"{path.relative_to(ROOT)}:{line}: {literal[:60]!r}"
        for path in product_files()
        if path != HOME
        for line, literal in literals(path.read_text(encoding="utf-8"))
        if is_forbidden(literal)
    ]
    assert not offences, "use engine_hooks.contract.names:\n" + "\n".join(offences)


def test_the_check_sees_what_it_should() -> None:
    source = '"""graph.name"""\nx = "graph.name"\ny = f"indexOf(keys, \'graph.kind\')"\nz = "graph.names"\n'
    assert [line for line, literal in literals(source) if is_forbidden(literal)] == [2, 3]
