"""What leaves the evaluator: alerts, handed to receivers. Whoever delivers implements `Receiver`.

The rooms of `queries.alerts.delivery` build the receivers that the settings name, by `receivers_of(settings)` in
`queries.alerts.delivery.receivers`; `queries.alerts.handing_over` gives each its own thread.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from queries.errors import QueriesError


class NotDeliveredError(QueriesError):
    """A receiver did not take alerts; its text says which one, why, and what to do, in one line."""

    exit_code = 3


@dataclass(frozen=True)
class Alert:
    """One alert as a receiver is to know it. Whoever has the same labels is the same alert."""

    labels: Mapping[str, str]
    """Its identity; `alertname` and `severity` are among them. Never a measured value."""
    annotations: Mapping[str, str]
    """What may change while it fires: summary, description, runbook, the finding, measured values, links."""
    starts_at: datetime
    """When it began to fire; UTC. The same after a restart."""
    ends_at: datetime | None
    """When it ended; None while it fires."""
    generator_url: str
    """Where to look: a page of the dashboards; '' where there is none."""


class Receiver(Protocol):
    """One place that alerts are sent to.

    Called from one thread of its own, never twice at a time. Each evaluation (every few seconds) hands over every
    alert that fires, again and again, and those that ended, for 15 minutes after: an Alertmanager wants it so, and
    whoever tells people must decide itself what is news (by labels and `starts_at`, or `ends_at`). Of several states
    of one alert that came up while a call lasted, only the latest is handed over. A call may take as long as it
    likes, retries included; it delays no other receiver, and no evaluation. `alerts` is never empty.
    """

    @property
    def name(self) -> str:
        """What it is called in messages, without secrets: `alertmanager http://127.0.0.1:9093`."""

    def send(self, alerts: Sequence[Alert]) -> None:
        """Deliver these.

        Raises:
            NotDeliveredError: they did not arrive. They are handed over again with the next evaluation.
        """
