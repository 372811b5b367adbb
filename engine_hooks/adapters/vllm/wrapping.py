"""Replaces methods of vLLM's classes by themselves with a hook around them."""

import functools
from collections.abc import Callable
from typing import Any, Final

from engine_hooks.adapters.guarded import Hook


def wrap(owner: type, method: str, hook: Hook) -> None:
    """Replaces a method of a class by itself with a hook around it. Wrapping it again changes nothing.

    Raises:
        AttributeError: the class has no such method.
    """
    original = getattr(owner, method)
    if not hasattr(original, _MARK):
        setattr(owner, method, _wrapped(original, hook))


def unwrap(owner: type, method: str) -> None:
    """Puts the engine's own method back."""
    wrapped = getattr(owner, method)
    if hasattr(wrapped, _MARK):
        setattr(owner, method, wrapped.__wrapped__)


_MARK: Final = "_tachograph_hook"


def _wrapped(original: Callable[..., Any], hook: Hook) -> Callable[..., Any]:
    @functools.wraps(original)
    def wrapper(self: Any, *arguments: Any, **named: Any) -> Any:
        return hook.around(original, self, arguments, named)

    setattr(wrapper, _MARK, hook)
    return wrapper
