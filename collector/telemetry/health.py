"""Whether a collector stores what it takes. That its process lives says nothing about it."""

from collections.abc import Callable


class Health:
    """What has to be well for executions to reach ClickHouse; each part tells for itself."""

    def __init__(self) -> None:
        self._parts: dict[str, Callable[[], str]] = {}

    def watch(self, part: str, trouble: Callable[[], str]) -> None:
        """Ask a part whenever health is asked for.

        Args:
            part: Its name in the answer, `clickhouse`.
            trouble: What is wrong with it, in one line; empty when nothing is. Quick, and from any thread.
        """
        self._parts[part] = trouble

    def troubles(self) -> dict[str, str]:
        """What is wrong, by part; empty when everything that comes in is stored."""
        told = {part: trouble() for part, trouble in self._parts.items()}
        return {part: trouble for part, trouble in told.items() if trouble}
