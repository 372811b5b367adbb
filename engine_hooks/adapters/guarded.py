"""Hooks around an engine's own methods, held so that nothing of ours can change what the engine does.

What we raise is caught, counted and logged once; a hook that keeps failing switches itself off.
What the engine raises passes through.
"""

import logging
import os
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

logger = logging.getLogger(__name__)

FAILURES_MAX: Final = 5
"""After so many a hook is off until the process ends."""
ENDPOINT_VARIABLES: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
SWITCH_VARIABLE: Final = "TACHOGRAPH_HOOKS"
"""`off` switches the hooks off."""

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

    def around(
        self, original: Callable[..., Any], subject: Any, arguments: tuple[Any, ...], named: dict[str, Any]
    ) -> Any:
        """Calls the engine's method on its object between the two halves; gives what it gives, raises what it raises."""
        seen: Any = None
        looks = self.on
        if looks and self.before is not None:
            try:
                seen = self.before(subject, arguments, named)
            except Exception as error:  # the engine must not fail by us
                looks = False
                self.failed(error)
        result = original(subject, *arguments, **named)
        if looks and self.after is not None:
            try:
                self.after(subject, seen, result)
            except Exception as error:
                self.failed(error)
        return result


def argument(arguments: tuple[Any, ...], named: Mapping[str, Any], position: int, name: str) -> Any:
    """An argument that the engine may pass by position or by name."""
    return arguments[position] if len(arguments) > position else named[name]


def wanted(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether an endpoint is named and neither we nor OpenTelemetry as a whole are switched off."""
    off = environment.get(SWITCH_VARIABLE, "").strip().lower() == "off"
    disabled = environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    return not off and not disabled and any(environment.get(name, "").strip() for name in ENDPOINT_VARIABLES)
