"""No option that is accepted and ignored: what a command asks of the settings, code that it reaches reads."""

import ast
import importlib
import inspect
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, Protocol, get_args

import pytest
import typer
from pydantic import ByteSize

from collector.access.behind import BEHIND
from tachograph import Settings, application, environment_of, parts_of

ROOMS = ("engine_hooks", "collector", "queries", "dashboards", "tachograph")
ASKED_FOR = {*Settings.model_fields, *BEHIND}


def attributes_read(thing: Any, seen: set[int]) -> set[str]:
    """Names of the attributes that a function, or a class with its methods, reads: itself, and by what it names."""
    thing = inspect.unwrap(thing) if isinstance(thing, FunctionType) else thing
    is_ours = isinstance(thing, FunctionType | type) and thing.__module__.split(".")[0] in ROOMS
    if not is_ours or id(thing) in seen or getattr(thing, "_is_protocol", False):
        return set()
    seen.add(id(thing))
    nodes = list(ast.walk(ast.parse(textwrap.dedent(inspect.getsource(thing)))))
    names = {**vars(sys.modules[thing.__module__]), **imported_within(nodes)}
    found = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    return found.union(*(attributes_read(named, seen) for named in things_named(nodes, names)))


def imported_within(nodes: list[ast.AST]) -> dict[str, Any]:
    statements = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.module]
    modules = [(importlib.import_module(node.module or ""), node.names) for node in statements]
    return {alias.asname or alias.name: getattr(module, alias.name) for module, names in modules for alias in names}


def things_named(nodes: list[ast.AST], names: dict[str, Any]) -> Iterator[Any]:
    for node in nodes:
        if isinstance(node, ast.Name):
            yield names.get(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            holder = names.get(node.value.id)
            yield getattr(holder, node.attr, None) if isinstance(holder, ModuleType) else None


def asked_by(function: Any) -> set[str]:
    asked = inspect.signature(function, eval_str=True).parameters["settings"].annotation
    return {name for base in asked.__mro__ for name in (*vars(base), *inspect.get_annotations(base))} & ASKED_FOR


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Every command's path, and its room's function."""
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, (*path, name))
    if command.callback is not None:
        yield " ".join(path), inspect.unwrap(command.callback)


WITH_SETTINGS = {
    path: function
    for path, function in commands(typer.main.get_command(application()))
    if "settings" in inspect.signature(function).parameters
}


@pytest.mark.parametrize("path", sorted(WITH_SETTINGS.keys() - {"up"}))
def test_a_command_reads_what_it_asks_of_the_settings(path: str) -> None:
    function = WITH_SETTINGS[path]
    assert asked_by(function) - attributes_read(function, set()) == set()


class Greedy(Protocol):
    data_dir: Path
    retention: str


def test_what_is_asked_for_and_ignored_is_found() -> None:
    def greedy(settings: Greedy) -> None:
        settings.data_dir.mkdir()

    greedy.__module__ = "queries.commands.query"
    assert asked_by(greedy) - attributes_read(greedy, set()) == {"retention"}


def other_value(name: str, file: Path) -> Any:
    """One that is not the setting's default."""
    field = Settings.model_fields[name]
    kinds = {field.annotation, *get_args(field.annotation)}
    if kinds & {bool}:
        return not field.default
    if kinds & {int, float, ByteSize}:
        return {"sampling_share": 0.5, "alert_interval_s": 60}.get(name, field.default + 3_600)
    if Path in kinds:
        return file
    return {"log_format": "json"}.get(name, "elsewhere")


@pytest.mark.parametrize("name", sorted(Settings.model_fields))
def test_up_hands_every_setting_to_its_parts(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are commands of their own, which read it."""
    file = tmp_path / "secret"
    file.write_text("0123456789abcdef\n")
    file.chmod(0o600)
    monkeypatch.setattr("tachograph.sending_variables", lambda _: {})
    as_it_is, changed = (
        (environment_of(settings), parts_of(settings))
        for settings in (Settings(_env_file=None), Settings(_env_file=None, **{name: other_value(name, file)}))
    )
    assert as_it_is != changed
