"""Silences in Alertmanager, through its API version 2."""

from collections.abc import Callable, Sequence
from typing import TypeVar
from urllib.parse import quote

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from queries.alerts.delivery.endpoint import Endpoint
from queries.alerts.delivery.errors import ReceiverAwayError, ReceiverRefusedError
from queries.alerts.delivery.silences import Silence

Answer = TypeVar("Answer")


class _Created(BaseModel):
    silence_id: str = Field(alias="silenceID")


class AlertmanagerSilences:
    """Those of one Alertmanager, or of a cluster, whose members tell each other: the first that answers is asked."""

    def __init__(self, members: Sequence[Endpoint]) -> None:
        self._members = members

    def create(self, silence: Silence) -> str:
        """Keep it there; its id.

        Raises:
            ReceiverAwayError: none answers.
            ReceiverRefusedError: it is refused.
        """
        made = self._asked(lambda member: member.ask("POST", "/api/v2/silences", silence.posted()))
        return _parsed(_Created, made).silence_id

    def all(self) -> list[Silence]:
        """Those that are kept there, by their end; as raising as `create`."""
        listed = self._asked(lambda member: member.ask("GET", "/api/v2/silences"))
        return sorted(_parsed(list[Silence], listed), key=lambda silence: (silence.ends_at, silence.id))

    def expire(self, silence_id: str) -> None:
        """End one now; as raising as `create`."""
        self._asked(lambda member: member.ask("DELETE", f"/api/v2/silence/{quote(silence_id, safe='')}"))

    def _asked(self, question: Callable[[Endpoint], Answer]) -> Answer:
        for member in self._members[:-1]:
            try:
                return question(member)
            except ReceiverAwayError:
                continue
        return question(self._members[-1])


def _parsed(kind: type[Answer], answer: bytes) -> Answer:
    try:
        return TypeAdapter(kind).validate_json(answer)
    except ValidationError as wrong:
        raise ReceiverRefusedError("what answers is no Alertmanager: its API version 2 is wanted") from wrong
