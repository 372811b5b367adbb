"""Receivers that people read: each group is told when something changed, and again each repeat interval."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Final, Protocol

import tenacity

from queries.alerts.bounded import Call
from queries.alerts.delivery.attempts import again
from queries.alerts.delivery.errors import ReceiverAwayError
from queries.alerts.delivery.groups import Group, grouped
from queries.alerts.delivery.notified import Notified
from queries.alerts.delivery.silences import OwnSilences
from queries.alerts.notifying import Alert, NotDeliveredError

ATTEMPTS: Final = 3
ATTEMPTS_APART_MAX_S: Final = 2.0
"""In one call; between calls it pauses, so that what is told in the end is what is true then."""
AWAY_PAUSE_MIN_S: Final = 5.0
AWAY_PAUSE_MAX_S: Final = 60.0
"""How long a channel that is away is not tried again: doubled with each call in vain."""
REFUSED_PAUSE_S: Final = 300.0
"""How long a group that was refused is not tried again."""


class Channel(Protocol):
    """The way to people: a webhook, Slack, email."""

    @property
    def name(self) -> str:
        """What it is called in messages, without secrets."""

    @property
    def at_once(self) -> int:
        """How many messages it may be given at a time, each by a thread of its own."""

    def tell(self, group: Group) -> None:
        """Send one message.

        Raises:
            NotDeliveredError: it did not arrive.
        """


class ToPeople:
    """A receiver for channels that do not know themselves what they were told.

    Args:
        retrying: How a channel that is away is tried again.
        now: The time, UTC.
        elapsed_s: A monotonic clock.
    """

    def __init__(
        self,
        channel: Channel,
        notified: Notified,
        silences: OwnSilences,
        *,
        retrying: tenacity.Retrying | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        elapsed_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = channel.name
        self._channel = channel
        self._notified = notified
        self._silences = silences
        self._retrying = retrying or again(ATTEMPTS, ATTEMPTS_APART_MAX_S)
        self._now = now
        self._elapsed_s = elapsed_s
        self._away: tuple[float, ReceiverAwayError] | None = None
        """Until when it is left alone, and what was said."""
        self._away_pause_s = AWAY_PAUSE_MIN_S
        self._refused: dict[str, tuple[float, NotDeliveredError]] = {}
        """By group, until when it is left alone, and what was said."""

    def send(self, alerts: Sequence[Alert]) -> None:
        """Tell each group of which something is news. One that is refused does not hold up the others.

        Raises:
            NotDeliveredError: the first failure. What arrived is not told again.
        """
        if self._away and self._elapsed_s() < self._away[0]:
            raise self._away[1]
        now = self._now()
        groups = [group for group in grouped(self._heard(alerts, now), now) if self._notified.is_news(group, now)]
        self._refused = {key: refusal for key, refusal in self._refused.items() if refusal[0] > self._elapsed_s()}
        failures = [self._refused[group.key][1] for group in groups if group.key in self._refused]
        untold = [self._notified.without_old_endings(group) for group in groups if group.key not in self._refused]
        for some in _first_alone(untold, self._channel.at_once):
            failures += self._remembered(some, self._outcomes(some), now)
        if failures:
            raise failures[0]

    def _heard(self, alerts: Sequence[Alert], now: datetime) -> list[Alert]:
        silences = self._silences.active(now)
        return [alert for alert in alerts if not any(silence.mutes(alert.labels) for silence in silences)]

    def _attempt(self, group: Group) -> Exception | None:
        """Why it did not arrive."""
        try:
            self._retrying(self._channel.tell, group)
        except Exception as wrong:
            return wrong
        return None

    def _outcomes(self, groups: Sequence[Group]) -> list[Exception | None]:
        """Send messages at the same time; in the order of their groups, why each did not arrive."""
        if len(groups) == 1:
            return [self._attempt(groups[0])]
        # Not a pool: its threads would hold up the end of the process.
        return [call.result(threading.TIMEOUT_MAX) for call in [self._begun(group) for group in groups]]

    def _begun(self, group: Group) -> Call[Exception | None]:
        return Call(lambda: self._attempt(group), f"to {self.name}")

    def _remembered(
        self, groups: Sequence[Group], outcomes: Sequence[Exception | None], now: datetime
    ) -> list[NotDeliveredError]:
        """Keep what became of messages that were sent together; the refusals.

        Raises:
            ReceiverAwayError: some did not arrive, nor will the others.
            NotKeptError: they arrived, and a restart would tell them again.
        """
        refusals: list[NotDeliveredError] = []
        for group, wrong in zip(groups, outcomes, strict=True):
            if isinstance(wrong, NotDeliveredError) and not isinstance(wrong, ReceiverAwayError):
                self._refused[group.key] = (self._elapsed_s() + REFUSED_PAUSE_S, wrong)
                refusals.append(wrong)
        arrived = [group for group, wrong in zip(groups, outcomes, strict=True) if wrong is None]
        if arrived:
            self._away_pause_s = AWAY_PAUSE_MIN_S
        away = next((wrong for wrong in outcomes if isinstance(wrong, ReceiverAwayError)), None)
        if away:
            self._away = (self._elapsed_s() + self._away_pause_s, away)
            self._away_pause_s = min(2 * self._away_pause_s, AWAY_PAUSE_MAX_S)
        if arrived:
            self._notified.record(arrived, now)
        for wrong in outcomes:
            if wrong is not None and wrong not in refusals:
                raise wrong
        return refusals


def _first_alone(groups: Sequence[Group], at_once: int) -> Iterator[Sequence[Group]]:
    """In order, as many as may be sent together; the first by itself, for a receiver that is away shall not be tried by all."""
    yield groups[:1]
    for first in range(1, len(groups), at_once):
        yield groups[first : first + at_once]
