"""How each receiver does, kept beside the alerts: `tachograph alerts list` is another process than the evaluator."""

import contextlib
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from pydantic import BaseModel

from queries.alerts.delivery import kept
from queries.alerts.delivery.endpoint import mark_of
from queries.alerts.delivery.errors import NotKeptError
from queries.alerts.notifying import Alert, Receiver


class ReceiverState(BaseModel):
    """How one receiver does."""

    name: str
    state: Literal["unused", "delivering", "failing"] = "unused"
    since: datetime
    error: str = ""
    """The latest, while it fails."""


class Watched:
    """A receiver whose state is kept.

    Args:
        directory: Where states are kept, a file each.
    """

    def __init__(
        self, receiver: Receiver, directory: Path, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self.name = receiver.name
        self._receiver = receiver
        self._file = directory / f"{mark_of(receiver.name)}.json"
        self._now = now
        self._state = kept.read(self._file, ReceiverState) or ReceiverState(name=self.name, since=now())
        self._write()

    def send(self, alerts: Sequence[Alert]) -> None:
        """Deliver these; as raising as the receiver."""
        try:
            self._receiver.send(alerts)
        except Exception as wrong:
            self._keep("failing", str(wrong))
            raise
        self._keep("delivering")

    def _keep(self, state: Literal["delivering", "failing"], error: str = "") -> None:
        if (self._state.state, self._state.error) == (state, error):
            return
        since = self._state.since if self._state.state == state else self._now()
        self._state = ReceiverState(name=self.name, state=state, since=since, error=error)
        self._write()

    def _write(self) -> None:
        # A disk that is full shall not keep alerts from being sent.
        with contextlib.suppress(NotKeptError):
            kept.write(self._file, self._state)


def watched(receivers: Sequence[Receiver], directory: Path) -> list[Receiver]:
    """These receivers with their states kept; those of receivers that are not among them are forgotten."""
    result: list[Receiver] = [Watched(receiver, directory) for receiver in receivers]
    current = {f"{mark_of(receiver.name)}.json" for receiver in receivers}
    for file in directory.glob("*.json"):
        if file.name not in current:
            file.unlink(missing_ok=True)
    return result


def receiver_states(directory: Path) -> list[ReceiverState]:
    """How the receivers of an evaluator did last, by name; none where none ran."""
    found = [kept.read(file, ReceiverState) for file in directory.glob("*.json")]
    return sorted((state for state in found if state), key=lambda state: state.name)
