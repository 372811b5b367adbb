"""Where alerts stand: what the evaluator of this data directory last left, with the silences; never an exception.

Read from the evaluator's own file and not from ClickHouse: alerts matter most while ClickHouse is away. Their history
is in ClickHouse (`alert_history`).
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

from pydantic import SecretStr

from dashboards.reading.answers import FRESH_S
from dashboards.reading.shared import LastGood, shared
from dashboards.reading.store import alert_rules, alertmanager_urls, data_dir
from queries.alerts.book import Entry
from queries.alerts.conditions import Condition
from queries.alerts.delivery.receivers import alertmanager_silences, own_silences
from queries.alerts.delivery.silences import Silence
from queries.alerts.loading import load_rules
from queries.alerts.memory import remembered
from queries.alerts.states import State
from queries.errors import QueriesError

NO_URLS: Final = SecretStr("")
LATE_S: Final = 120.0
"""An evaluator that has not looked for so long is said to be away, in s."""


@dataclass(frozen=True)
class Place:
    """Where state and silences are kept: the settings of delivery, as far as reading needs them."""

    data_dir: Path
    alertmanager_urls: str = ""
    alert_webhooks: SecretStr = NO_URLS
    alert_notify: SecretStr = NO_URLS
    alert_repeat_s: int = 0
    dashboards_url: str = ""


class Kept(NamedTuple):
    """A silence, and where it is kept."""

    silence: Silence
    where: str


class Alert(NamedTuple):
    """An alert, and the silences that mute it."""

    entry: Entry
    muted_by: tuple[Kept, ...]


@dataclass(frozen=True)
class Standings:
    """What is known of all alerts."""

    alerts: tuple[Alert, ...] = ()
    """Those that are not inactive, the latest to change first."""
    silences: tuple[Kept, ...] = ()
    """Those in force, the first to end first."""
    evaluated_at: datetime | None = None
    """When the evaluator last looked, UTC; None where none ever ran on this data directory."""
    at: datetime | None = None
    problem: str = ""

    @property
    def firing(self) -> tuple[Alert, ...]:
        """Those that fire and wake somebody."""
        return tuple(one for one in self.alerts if one.entry.standing.fires and not one.muted_by)

    @property
    def silenced(self) -> tuple[Alert, ...]:
        """Those that fire and wake nobody."""
        return tuple(one for one in self.alerts if one.entry.standing.fires and one.muted_by)

    @property
    def pending(self) -> tuple[Alert, ...]:
        """Those whose condition holds, not yet for long enough, and those of which nothing is known any more."""
        return tuple(
            one
            for one in self.alerts
            if one.entry.standing.state in (State.PENDING, State.NO_DATA) and not one.entry.standing.fires
        )

    @property
    def ended(self) -> tuple[Alert, ...]:
        """Those that fired until lately."""
        return tuple(one for one in self.alerts if one.entry.standing.ended)

    def is_late(self, now: datetime) -> bool:
        """Whether the evaluator should have looked since."""
        return self.evaluated_at is not None and (now - self.evaluated_at).total_seconds() > LATE_S


PLACES_MAX: Final = 2
"""There is one place in a process."""
LAST_GOOD = LastGood(Standings(), PLACES_MAX)


def standings() -> Standings:
    """What is known of the alerts of the data directory that the settings name."""
    return shared_standings(data_dir(), alertmanager_urls())


@shared(FRESH_S, PLACES_MAX)
def shared_standings(directory: Path, urls: str) -> Standings:
    """One reading for all viewers. A failure is a reading too."""
    place = Place(directory, urls)
    try:
        good = read(place, datetime.now(UTC))
    except QueriesError as wrong:
        return replace(LAST_GOOD.recall((place,)), problem=str(wrong))
    LAST_GOOD.keep((place,), good)
    return good


def read(place: Place, now: datetime) -> Standings:
    """State and silences as they are.

    Raises:
        QueriesError: the state cannot be read, or an Alertmanager does not tell its silences.
    """
    entries, counters = remembered(place.data_dir / "alerts")
    silences = in_force(place, now)
    alerts = (
        Alert(one, tuple(kept for kept in silences if kept.silence.mutes(one.labels))) for one in entries.values()
    )
    return Standings(
        tuple(sorted(alerts, key=order)),
        tuple(silences),
        datetime.fromtimestamp(counters["evaluated_at"], UTC) if "evaluated_at" in counters else None,
        now,
    )


def in_force(place: Place, now: datetime) -> list[Kept]:
    """Every silence in force: our own, and Alertmanager's where one is configured."""
    alertmanager = alertmanager_silences(place)
    found = [
        *kept(own_silences(place).all(), "tachograph"),
        *kept(alertmanager.all() if alertmanager else (), "Alertmanager"),
    ]
    return sorted((one for one in found if one.silence.state(now) == "active"), key=lambda one: one.silence.ends_at)


def kept(silences: Iterable[Silence], where: str) -> list[Kept]:
    """These silences with where they are kept."""
    return [Kept(silence, where) for silence in silences]


def order(alert: Alert) -> tuple[str, float, tuple[tuple[str, str], ...]]:
    """Critical ones first ("critical" < "warning"), then the latest; the same alerts stay in the same order."""
    began = alert.entry.starts_at
    return (alert.entry.labels.get("severity", ""), -began.timestamp() if began else 0.0, alert.entry.identity)


SILENCE_RULE, SILENCE_QUERY = "EngineSilent", "silent_engines"
RULES_FRESH_S = 30.0


def silence_conditions() -> tuple[Condition, ...]:
    """When an alert calls an engine silent: as the user's own rule of that name has it, or else the shipped one.

    The shipped one stands in too where the user's cannot be read, or asks another question than `silent_engines`.
    """
    return shared_silence_conditions(alert_rules())


@shared(RULES_FRESH_S, PLACES_MAX)
def shared_silence_conditions(own: Path | None) -> tuple[Condition, ...]:
    """One reading for all viewers."""
    try:
        rule = load_rules(own).named(SILENCE_RULE)
    except QueriesError:
        rule = load_rules().named(SILENCE_RULE)
    return rule.when if rule.query == SILENCE_QUERY else load_rules().named(SILENCE_RULE).when
