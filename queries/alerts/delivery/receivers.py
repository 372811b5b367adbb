"""The receivers, and the places for silences, that the settings name."""

from datetime import timedelta
from pathlib import Path

from queries.alerts.delivery.alertmanager import AlertmanagerReceiver
from queries.alerts.delivery.alertmanager_silences import AlertmanagerSilences
from queries.alerts.delivery.endpoint import endpoint, mark_of, urls_in
from queries.alerts.delivery.notified import Notified
from queries.alerts.delivery.notify import AppriseChannel
from queries.alerts.delivery.people import Channel, ToPeople
from queries.alerts.delivery.settings import DeliverySettings, KeptSettings, ReceiverSettings, SilenceSettings
from queries.alerts.delivery.silences import OwnSilences
from queries.alerts.delivery.standing import ReceiverState, receiver_states, watched
from queries.alerts.delivery.webhook import Webhook
from queries.alerts.notifying import Receiver


def receivers_of(settings: DeliverySettings) -> list[Receiver]:
    """One receiver for each URL that the settings name; the same URL twice counts once.

    Raises:
        CallError: a URL is none that can be sent to, or its extra is not installed.
    """
    alertmanagers = [AlertmanagerReceiver(endpoint(url)) for url in _once(settings.alertmanager_urls)]
    webhooks = _once(settings.alert_webhooks.get_secret_value())
    notified = _once(settings.alert_notify.get_secret_value())
    channels: list[tuple[str, Channel]] = [
        *((url, Webhook(endpoint(url), settings.dashboards_url)) for url in webhooks),
        *((url, AppriseChannel(url)) for url in notified),
    ]
    people = [_to_people(url, channel, settings) for url, channel in channels]
    return watched([*alertmanagers, *people], _directory(settings) / "receivers")


def states_of(settings: KeptSettings) -> list[ReceiverState]:
    """How the receivers did last that the evaluator of this data directory has, by name."""
    return receiver_states(_directory(settings) / "receivers")


def own_silences(settings: KeptSettings) -> OwnSilences:
    """Those that webhooks and Apprise heed."""
    return OwnSilences(_directory(settings) / "silences")


def alertmanager_silences(settings: SilenceSettings) -> AlertmanagerSilences | None:
    """Those of the Alertmanager; None where none is configured.

    Raises:
        CallError: a URL is none.
    """
    members = [endpoint(url) for url in _once(settings.alertmanager_urls)]
    return AlertmanagerSilences(members) if members else None


def has_people(settings: ReceiverSettings) -> bool:
    """Whether our own silences have anything to silence."""
    return bool(urls_in(settings.alert_webhooks.get_secret_value() + " " + settings.alert_notify.get_secret_value()))


def _to_people(url: str, channel: Channel, settings: DeliverySettings) -> ToPeople:
    file = _directory(settings) / "notified" / f"{mark_of(url)}.json"
    return ToPeople(channel, Notified(file, timedelta(seconds=settings.alert_repeat_s)), own_silences(settings))


def _directory(settings: KeptSettings) -> Path:
    return settings.data_dir / "alerts"


def _once(urls: str) -> list[str]:
    return list(dict.fromkeys(urls_in(urls)))
