"""Groups to a webhook, in the form that Alertmanager gives its own: version "4".

https://prometheus.io/docs/alerting/latest/configuration/#webhook_config
"""

from typing import Any, Final

from queries.alerts.delivery.alertmanager import rfc3339
from queries.alerts.delivery.endpoint import Endpoint, mark_of
from queries.alerts.delivery.groups import Group, fingerprint
from queries.alerts.notifying import Alert

RECEIVER: Final = "tachograph"
"""What Alertmanager would call the receiver in its configuration."""
ALERTS_MAX: Final = 200
"""Alerts of one message; the others are counted in `truncatedAlerts`."""
_NO_INSTANT: Final = "0001-01-01T00:00:00Z"


MESSAGES_AT_ONCE: Final = 8
"""Few enough for any server; with hundreds of engines, eight times as quick as one after another."""


class Webhook:
    """A channel to one URL.

    Args:
        external_url: The dashboards, told as `externalURL`.
    """

    at_once = MESSAGES_AT_ONCE

    def __init__(self, endpoint: Endpoint, external_url: str) -> None:
        self.name = f"webhook {endpoint.shown} {mark_of(endpoint.url)}"
        self._endpoint = endpoint
        self._external_url = external_url

    def tell(self, group: Group) -> None:
        """Post one group.

        Raises:
            ReceiverAwayError: no answer in time, or one that says to come back.
            ReceiverRefusedError: any other answer than a success.
        """
        self._endpoint.ask("POST", body=payload(group, self._external_url))


def payload(group: Group, external_url: str) -> dict[str, Any]:
    """The message of one group, version "4"."""
    alerts = group.alerts[:ALERTS_MAX]
    return {
        "version": "4",
        "groupKey": group.key,
        "truncatedAlerts": len(group.alerts) - len(alerts),
        "status": group.status,
        "receiver": RECEIVER,
        "groupLabels": dict(group.labels),
        "commonLabels": _common([dict(alert.labels) for alert in group.alerts]),
        "commonAnnotations": _common([dict(alert.annotations) for alert in group.alerts]),
        "externalURL": external_url,
        "alerts": [_told(alert, is_firing=index < len(group.firing)) for index, alert in enumerate(alerts)],
    }


def _told(alert: Alert, *, is_firing: bool) -> dict[str, Any]:
    return {
        "status": "firing" if is_firing else "resolved",
        "labels": dict(alert.labels),
        "annotations": dict(alert.annotations),
        "startsAt": rfc3339(alert.starts_at),
        "endsAt": _NO_INSTANT if is_firing or alert.ends_at is None else rfc3339(alert.ends_at),
        "generatorURL": alert.generator_url,
        "fingerprint": fingerprint(alert.labels),
    }


def _common(maps: list[dict[str, str]]) -> dict[str, str]:
    """What all of them say alike."""
    return {name: value for name, value in maps[0].items() if all(other.get(name) == value for other in maps)}
