"""Alerts to receivers: each has a thread and a box of its own, so that a dead one delays nothing."""

import threading
from collections.abc import Sequence
from typing import Final

import structlog

from queries.alerts.notifying import Alert, Receiver
from queries.errors import QueriesError

BOX_MAX: Final = 20_000
"""Alerts that wait for one receiver; further ones are dropped and counted."""
END_S: Final = 3.0
"""How long `stop` waits for a call under way."""

Labels = tuple[tuple[str, str], ...]


class Handing:
    """One receiver's box, and the thread that empties it. Of each alert only the latest state waits in it."""

    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._box: dict[Labels, Alert] = {}
        self._undelivered: tuple[Alert, ...] = ()
        self._wakes = threading.Condition()
        self._stopping = False
        self._is_down = False
        self.dropped = 0
        self.failed = 0
        """Attempts in vain, each of however many alerts."""
        self.sent = 0
        self._thread = threading.Thread(target=self._run, name=f"to {receiver.name}", daemon=True)
        self._thread.start()

    @property
    def name(self) -> str:
        return self._receiver.name

    def put(self, alerts: Sequence[Alert]) -> None:
        """Leave these in the box; returns at once."""
        with self._wakes:
            # Ended ones that did not arrive: those that fire are among `alerts` anyway.
            for alert in (*self._undelivered, *alerts):
                self._keep(alert)
            self._undelivered = ()
            self._wakes.notify()

    def _keep(self, alert: Alert) -> None:
        labels = tuple(sorted(alert.labels.items()))
        if labels in self._box or len(self._box) < BOX_MAX:
            self._box[labels] = alert
        else:
            self.dropped += 1

    def stop(self) -> None:
        """Send what waits, if that is soon done."""
        with self._wakes:
            self._stopping = True
            self._wakes.notify()
        self._thread.join(END_S)

    def _run(self) -> None:
        while alerts := self._taken():
            self._send(alerts)

    def _taken(self) -> tuple[Alert, ...]:
        """Everything in the box, waited for; nothing once stopped."""
        with self._wakes:
            self._wakes.wait_for(lambda: self._box or self._stopping)
            alerts, self._box = tuple(self._box.values()), {}
            return alerts

    def _send(self, alerts: tuple[Alert, ...]) -> None:
        log = structlog.get_logger()
        try:
            self._receiver.send(alerts)
        except Exception as wrong:
            self.failed += 1
            if not self._is_down or not isinstance(wrong, QueriesError):
                log.warning("alerts are not delivered", receiver=self.name, error=str(wrong)[:400])
            self._is_down = True
            self._undelivered = tuple(alert for alert in alerts if alert.ends_at)
            return
        self.sent += len(alerts)
        if self._is_down:
            log.info("alerts are delivered again", receiver=self.name)
        self._is_down = False
