"""Alerts to a Prometheus Alertmanager: it groups, inhibits, silences, repeats and knows the people.

https://github.com/prometheus/alertmanager/blob/main/api/v2/openapi.yaml (API version 2).
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from queries.alerts.delivery.attempts import again
from queries.alerts.delivery.endpoint import Endpoint
from queries.alerts.notifying import Alert

ALERTS_PER_REQUEST: Final = 256
"""As Prometheus sends them."""
ATTEMPTS: Final = 3
ATTEMPTS_APART_MAX_S: Final = 2.0
"""Few and soon: the next evaluation sends all of it again."""


class AlertmanagerReceiver:
    """One Alertmanager. What it is told again it knows: the whole state may be sent each interval.

    A firing alert is sent without an end, so that Alertmanager's own `resolve_timeout` (5 min) ends it when nobody
    sends it any more.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self.name = f"alertmanager {endpoint.shown}"
        self._endpoint = endpoint
        self._retrying = again(ATTEMPTS, ATTEMPTS_APART_MAX_S)

    def send(self, alerts: Sequence[Alert]) -> None:
        """Post them, in as many requests as it takes.

        Raises:
            ReceiverAwayError: it does not answer, or says to come back.
            ReceiverRefusedError: it refuses them.
        """
        for some in _portions(alerts):
            self._retrying(self._endpoint.ask, "POST", "/api/v2/alerts", [_posted(alert) for alert in some])


def _portions(alerts: Sequence[Alert]) -> Iterator[Sequence[Alert]]:
    for first in range(0, len(alerts), ALERTS_PER_REQUEST):
        yield alerts[first : first + ALERTS_PER_REQUEST]


def _posted(alert: Alert) -> dict[str, Any]:
    written = {
        "labels": dict(alert.labels),
        "annotations": dict(alert.annotations),
        "startsAt": rfc3339(alert.starts_at),
        "generatorURL": alert.generator_url,
    }
    return written if alert.ends_at is None else {**written, "endsAt": rfc3339(alert.ends_at)}


def rfc3339(instant: datetime) -> str:
    """An instant as Alertmanager writes it: UTC, with as many decimals as it has."""
    written = instant.astimezone(UTC).replace(tzinfo=None).isoformat()
    return f"{written.rstrip('0') if instant.microsecond else written}Z"
