"""What delivery needs of the command line's settings."""

from pathlib import Path
from typing import Protocol

from pydantic import SecretStr


class KeptSettings(Protocol):
    """Where is remembered what was delivered, and what is silenced."""

    @property
    def data_dir(self) -> Path: ...


class SilenceSettings(KeptSettings, Protocol):
    """Every place that silences lie in. URLs are separated by commas or spaces; none is ''."""

    @property
    def alertmanager_urls(self) -> str: ...


class ReceiverSettings(SilenceSettings, Protocol):
    """Who is told."""

    @property
    def alert_webhooks(self) -> SecretStr: ...

    @property
    def alert_notify(self) -> SecretStr: ...


class DeliverySettings(ReceiverSettings, Protocol):
    """Who is told, how often, and where they may look."""

    @property
    def alert_repeat_s(self) -> int: ...

    @property
    def dashboards_url(self) -> str: ...
