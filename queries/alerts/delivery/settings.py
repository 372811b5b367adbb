"""What delivery needs of the command line's settings."""

from pathlib import Path
from typing import Protocol

from pydantic import SecretStr


class DeliverySettings(Protocol):
    """What is to be known of receivers. URLs are separated by commas or spaces; none is ''."""

    @property
    def data_dir(self) -> Path: ...

    @property
    def alertmanager_urls(self) -> str: ...

    @property
    def alert_webhooks(self) -> SecretStr: ...

    @property
    def alert_notify(self) -> SecretStr: ...

    @property
    def alert_repeat_s(self) -> int: ...

    @property
    def dashboards_url(self) -> str: ...
