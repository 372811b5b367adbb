"""Hooks that wait for a module, without importing it."""

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from engine_hooks.adapters.vllm.imports import PostImportFinder

NAME = "watched_by_a_test"


def nothing(_: ModuleType) -> None:
    """A callback that does nothing."""


@pytest.fixture
def finder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PostImportFinder]:
    (tmp_path / f"{NAME}.py").write_text("VALUE = 1\n\n\ndef function():\n    return VALUE\n")
    monkeypatch.syspath_prepend(tmp_path)
    watching = PostImportFinder()
    yield watching
    sys.meta_path[:] = [one for one in sys.meta_path if one is not watching]
    sys.modules.pop(NAME, None)


def test_the_callback_comes_after_the_module_was_executed(finder: PostImportFinder) -> None:
    seen: list[int] = []
    finder.watch(NAME, lambda module: seen.append(module.VALUE))
    assert seen == []
    assert NAME not in sys.modules
    importlib.import_module(NAME)
    importlib.import_module(NAME)
    assert seen == [1]


def test_a_module_that_is_there_is_seen_at_once(finder: PostImportFinder) -> None:
    importlib.import_module(NAME)
    seen: list[str] = []
    finder.watch(NAME, lambda module: seen.append(module.__name__))
    assert seen == [NAME]
    assert finder not in sys.meta_path


def test_the_module_keeps_its_own_loader_and_source(finder: PostImportFinder) -> None:
    finder.watch(NAME, nothing)
    without = importlib.util.find_spec(NAME)
    module = importlib.import_module(NAME)
    assert without is not None
    assert type(module.__loader__) is type(without.loader)
    assert "return VALUE" in inspect.getsource(module.function)


def test_a_callback_that_raises_does_not_break_the_import(
    finder: PostImportFinder, caplog: pytest.LogCaptureFixture
) -> None:
    def raises(module: ModuleType) -> None:
        raise RuntimeError("a fault of ours")

    finder.watch(NAME, raises)
    assert importlib.import_module(NAME).VALUE == 1
    assert f"hooks of {NAME} could not be set" in caplog.text


def test_a_loader_of_several_modules_calls_back_for_the_watched_one(finder: PostImportFinder, tmp_path: Path) -> None:
    """pytest's own loader is such a one."""
    (tmp_path / "not_watched_by_a_test.py").write_text("")
    seen: list[str] = []
    finder.watch(NAME, lambda module: seen.append(module.__name__))
    importlib.util.find_spec(NAME)
    importlib.import_module("not_watched_by_a_test")
    importlib.import_module(NAME)
    assert set(seen) == {NAME}
    sys.modules.pop("not_watched_by_a_test")


def test_what_is_not_watched_is_left_to_others(finder: PostImportFinder) -> None:
    finder.watch(NAME, nothing)
    assert finder.find_spec("json.decoder") is None


def test_a_watched_module_that_does_not_exist_is_not_found(finder: PostImportFinder) -> None:
    finder.watch("no_such_module_at_all", nothing)
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("no_such_module_at_all")
