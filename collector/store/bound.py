"""A bound on what the embedded store takes of its disk.

Near the bound it warns. Beyond it, whole days of executions go, the oldest first, and are counted. Today's stay: where
they alone are too much, new requests are turned away with a time to come again. It never stops without a word.
"""

from typing import Any, Final, NamedTuple

import structlog

from collector.repeated_look import RepeatedLook
from collector.store.client import StoreClient

log = structlog.get_logger(__name__)

RAW_TABLE: Final = "graph_executions"
"""What is dropped: rollups and what people wrote are small, and are not to be had again."""
WARNED_FRACTION: Final = 0.8
_LOOK_EVERY_S: Final = 5.0
_PARTS: Final = """
SELECT table, partition_id, partition, sum(bytes_on_disk) AS bytes, sum(rows) AS rows
FROM system.parts WHERE active AND database = currentDatabase()
GROUP BY ALL ORDER BY partition_id
"""


class BoundState(NamedTuple):
    """What was found at the last look."""

    bytes: int = 0
    """Of the parts that count; what merges replaced takes some more for ten minutes."""
    bytes_max: int = 0
    """0 is no bound."""
    is_full: bool = False
    """Beyond the bound, and nothing left to drop: requests are turned away."""
    dropped_days: int = 0
    """Since this process began; so are the next two."""
    dropped_rows: int = 0
    dropped_bytes: int = 0

    @property
    def fraction(self) -> float:
        """How much of the bound is taken; 0 without one."""
        return self.bytes / self.bytes_max if self.bytes_max else 0.0


class StoreBound(RepeatedLook):
    """Looks every few seconds."""

    def __init__(self, store: StoreClient, bytes_max: int) -> None:
        super().__init__("store bound", "the store's size is not known", _LOOK_EVERY_S, looks_at_once=True)
        self._store = store
        self._state = BoundState(bytes_max=bytes_max)

    @property
    def state(self) -> BoundState:
        """What was found at the last look."""
        return self._state

    def trouble(self) -> str:
        """Why requests are turned away; empty where they are not."""
        state = self._state
        if not state.is_full:
            return ""
        return (
            f"the store takes {state.bytes:,} bytes of {state.bytes_max:,} (TACHOGRAPH_STORE_BYTES_MAX), "
            "and holds no executions older than today's that could be dropped"
        )

    def look(self) -> None:
        """See how much there is, and drop what is too much.

        Raises:
            CollectorError: the store does not answer.
            ClickHouseError: it fails.
        """
        with self._store.using() as client:
            parts: list[dict[str, Any]] = list(client.query(_PARTS).named_results())
            size = sum(part["bytes"] for part in parts)
            days = [part for part in parts if part["table"] == RAW_TABLE]
            state, bytes_max = self._state, self._state.bytes_max
            for day in days[:-1] if bytes_max else []:
                if size <= bytes_max:
                    break
                client.command(f"ALTER TABLE {RAW_TABLE} DROP PARTITION ID '{day['partition_id']}'")
                size -= day["bytes"]
                state = state._replace(
                    dropped_days=state.dropped_days + 1,
                    dropped_rows=state.dropped_rows + day["rows"],
                    dropped_bytes=state.dropped_bytes + day["bytes"],
                )
                log.warning("oldest executions dropped: the store is full", day=day["partition"], rows=day["rows"])
        self._state = state._replace(bytes=size, is_full=bool(bytes_max) and size > bytes_max)

    def see_to_it(self) -> None:
        self.look()
        self._warn()

    def _warn(self) -> None:
        state = self._state
        if state.is_full:
            log.warning("requests are turned away: the store is full", bytes=state.bytes, bytes_max=state.bytes_max)
        elif state.fraction > WARNED_FRACTION:
            log.warning("the store is nearly full", bytes=state.bytes, bytes_max=state.bytes_max)
