"""What became of alerts, as rows of `alert_history`: put aside with the state, sent when the collector takes them."""

import threading
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

import structlog

from queries.alerts.book import Change
from queries.alerts.memory import Batch, Memory
from queries.errors import CallError, QueriesError
from queries.rows import store_rows

TABLE: Final = "alert_history"
PAUSE_S: Final = 10.0
"""Between two attempts."""
END_S: Final = 3.0

Store = Callable[[list[dict[str, Any]]], object]


def row_of(change: Change, now: datetime) -> dict[str, Any]:
    """One change as a row of the table."""
    entry = change.entry
    return {
        "changed_at": now.isoformat(timespec="milliseconds"),
        "alertname": entry.rule,
        "severity": entry.labels.get("severity", ""),
        "state": entry.standing.state,
        "state_before": change.before,
        "starts_at": entry.starts_at.isoformat(timespec="milliseconds") if entry.starts_at else None,
        "service_instance_id": entry.about.get("service_instance_id", ""),
        "host_name": entry.about.get("host_name", ""),
        "cell": entry.about.get("cell", ""),
        "labels": entry.labels,
        "annotations": entry.said,
        "measured": dict(entry.measured),
    }


class HistorySender:
    """Sends what a memory has put aside, in a thread of its own."""

    def __init__(self, memory: Memory, store: Store, pause_s: float = PAUSE_S) -> None:
        self._memory = memory
        self._store = store
        self._pause_s = pause_s
        self._wakes = threading.Event()
        self._stopping = False
        self._is_down = False
        self._thread = threading.Thread(target=self._run, name="alert-history", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """There is something to send."""
        self._wakes.set()

    def stop(self) -> None:
        self._stopping = True
        self._wakes.set()
        self._thread.join(END_S)

    def _run(self) -> None:
        while not self._stopping:
            self._send_all()
            self._wakes.wait(self._pause_s)
            self._wakes.clear()

    def _send_all(self) -> None:
        try:
            while not self._stopping and (batch := self._memory.batch()):
                self._send(batch)
        except QueriesError as wrong:
            if not self._is_down:
                structlog.get_logger().warning("the history of alerts waits", error=str(wrong)[:400])
            self._is_down = True
            return
        self._is_down = False

    def _send(self, batch: Batch) -> None:
        try:
            self._store(batch.rows)
        except CallError as wrong:
            # These very rows are at fault: they would hold up all others for ever.
            structlog.get_logger().error("history of alerts is refused", rows=len(batch.rows), error=str(wrong)[:400])
            self._memory.refused(batch)
        else:
            self._memory.sent(batch)


def storing_at(rows_url: str, clickhouse_url: str) -> Store:
    """Stores rows through the door of a collector, in the store that the rules are evaluated on and in no other."""
    return lambda rows: store_rows(rows_url, TABLE, rows, beside=clickhouse_url)
