"""What the commands of `tachograph alerts` need to know."""

from pathlib import Path
from typing import Protocol

from queries.alerts.delivery.settings import DeliverySettings


class AlertSettings(Protocol):
    """Settings, with every URL filled in."""

    @property
    def clickhouse_url(self) -> str: ...
    @property
    def rows_url(self) -> str: ...
    @property
    def data_dir(self) -> Path: ...
    @property
    def alert_rules(self) -> Path | None: ...
    @property
    def alert_interval_s(self) -> float: ...
    @property
    def dashboards_url(self) -> str: ...


class RunSettings(AlertSettings, DeliverySettings, Protocol):
    """With whom to tell."""


def state_directory(settings: AlertSettings) -> Path:
    """Where alerts are remembered."""
    return settings.data_dir / "alerts"
