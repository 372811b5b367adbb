"""Wraps a method of the engine so that nothing of ours can change what it does.

What we raise is caught, counted and logged once; a hook that keeps failing switches itself off.
What the engine raises passes through.
"""

import functools
import logging
from collections.abc import Callable
from typing import Any, Final, TypeAlias

logger = logging.getLogger(__name__)

FAILURES_MAX: Final = 5
"""After so many a hook is off until the process ends."""


Before: TypeAlias = Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]
"""Sees the object and the arguments before the engine's method runs; what it returns is handed to `After`."""
After: TypeAlias = Callable[[Any, Any, Any], None]
"""Sees the object, what `Before` returned and the result, after the engine's method ran."""


class Hook:
    """One wrapped method, and how its hook fares."""

    def __init__(self, name: str, before: Before | None = None, after: After | None = None) -> None:
        self.name = name
        self.before = before
        self.after = after
        self.failures = 0
        self.on = True

    def failed(self, error: Exception) -> None:
        """Counts one failure of ours; logs the first, and the one that switches the hook off."""
        self.failures += 1
        if self.failures == 1:
            logger.warning("the hook on %s failed; the engine goes on", self.name, exc_info=error)
        if self.failures >= FAILURES_MAX and self.on:
            self.on = False
            logger.warning("the hook on %s failed %d times and is off", self.name, self.failures)


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
        seen: Any = None
        looks = hook.on
        if looks and hook.before is not None:
            try:
                seen = hook.before(self, arguments, named)
            except Exception as error:  # the engine must not fail by us
                looks = False
                hook.failed(error)
        result = original(self, *arguments, **named)
        if looks and hook.after is not None:
            try:
                hook.after(self, seen, result)
            except Exception as error:
                hook.failed(error)
        return result

    setattr(wrapper, _MARK, hook)
    return wrapper


def argument(arguments: tuple[Any, ...], named: dict[str, Any], position: int, name: str) -> Any:
    """An argument that the engine may pass by position or by name."""
    return arguments[position] if len(arguments) > position else named[name]
