"""What the commands of `tachograph alerts` need to know. Each asks for what it uses: the rest would be no flag of it."""

from pathlib import Path
from typing import Protocol

from queries.alerts.delivery.settings import DeliverySettings, KeptSettings, ReceiverSettings, SilenceSettings


class RuleSettings(Protocol):
    """Which rules there are."""

    @property
    def alert_rules(self) -> Path | None: ...
    @property
    def alert_interval_s(self) -> float: ...


class HistorySettings(Protocol):
    """Where the history lies."""

    @property
    def clickhouse_url(self) -> str: ...


class EvaluatingSettings(RuleSettings, HistorySettings, Protocol):
    """What a rule is evaluated on: the store, and the collector that it may ask about."""

    @property
    def rows_url(self) -> str: ...


class PlaceSettings(SilenceSettings, Protocol):
    """Where an evaluator keeps its state and silences, or whom to ask for that."""

    @property
    def named_data_dir(self) -> Path | None:
        """The data directory where somebody named it, None where it is the default."""

    @property
    def collector_url(self) -> str: ...


class StandingSettings(RuleSettings, PlaceSettings, Protocol):
    """The rules, how their evaluator left the alerts, and what silences them."""


class SilencingSettings(RuleSettings, ReceiverSettings, PlaceSettings, Protocol):
    """Where silences are kept, and the rules that they may name."""


class AlertSettings(EvaluatingSettings, KeptSettings, Protocol):
    """All that evaluating takes, again and again."""

    @property
    def dashboards_url(self) -> str: ...


class RunSettings(AlertSettings, DeliverySettings, Protocol):
    """With whom to tell."""


def state_directory(settings: KeptSettings) -> Path:
    """Where alerts are remembered."""
    return settings.data_dir / "alerts"
