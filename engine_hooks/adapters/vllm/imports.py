"""Runs a callback once a module was imported, and imports nothing itself."""

import logging
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

logger = logging.getLogger(__name__)

Callback = Callable[[ModuleType], None]


class PostImportFinder:
    """A finder that finds nothing of its own: it asks the others, and has the module's loader call back.

    What it is asked to watch costs one dictionary look-up for each import of the process.
    """

    def __init__(self) -> None:
        self._callbacks: dict[str, Callback] = {}

    def watch(self, module: str, callback: Callback) -> None:
        """Calls back at once if the module is there, else when it has been executed. What it raises is logged."""
        loaded = sys.modules.get(module)
        if loaded is not None and not _is_loading(loaded):
            _call(callback, loaded)
            return
        self._callbacks[module] = callback
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec that the other finders give, told to call back; `None` for any module not watched."""
        callback = self._callbacks.get(name)
        if callback is None:
            return None
        spec = self._spec_of_others(name, path, target)
        if spec is not None and spec.loader is not None:
            _call_after_execution(spec.loader, name, callback)
        return spec

    def _spec_of_others(self, name: str, path: Sequence[str] | None, target: ModuleType | None) -> ModuleSpec | None:
        for finder in sys.meta_path:
            if finder is not self and (spec := finder.find_spec(name, path, target)) is not None:
                return spec
        return None


def _is_loading(module: ModuleType) -> bool:
    return bool(getattr(getattr(module, "__spec__", None), "_initializing", False))


def _call_after_execution(loader: Any, name: str, callback: Callback) -> None:
    """Only this loader's method is replaced, so that whoever looks at the module finds its own loader there.

    A loader may serve many modules.
    """
    execute = loader.exec_module

    def exec_module(module: ModuleType) -> None:
        execute(module)
        if module.__name__ == name:
            _call(callback, module)

    try:
        loader.exec_module = exec_module
    except AttributeError:  # a loader without a dictionary, or a built-in one
        logger.warning("%r cannot be watched: its module is imported without hooks", loader)


def _call(callback: Callback, module: ModuleType) -> None:
    try:
        callback(module)
    except Exception:  # an import must not fail by us
        logger.warning("hooks of %s could not be set", module.__name__, exc_info=True)
