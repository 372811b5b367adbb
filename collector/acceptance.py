"""The seam between the doors and whatever keeps their requests: what is handed over, and what comes back.

CollectorError
└── AcceptanceError
    ├── MalformedRequestError     never send it again
    └── TryAgainLaterError        send it again after `retry_after_s`
        ├── QueueFullError
        └── StoreUnavailableError
"""

from collections.abc import Mapping
from concurrent.futures import Future
from typing import NamedTuple, Protocol

from collector.errors import CollectorError


class Outcome(NamedTuple):
    """What became of the spans of one request."""

    stored: int = 0
    """Executions stored, odd ones (`clock_trouble`) among them."""
    refused: Mapping[str, int] = {}
    """Executions that break the contract, by reason."""
    other_spans: int = 0
    """Spans that are no graph executions: accepted, not kept."""
    deduplicated: int = 0
    """Executions whose span was stored before, in another request; they are not stored again."""
    clock_trouble: int = 0
    """Stored executions whose times contradict each other."""
    duplicate: bool = False
    """These bytes came before. What became of them then is told again; nothing was stored now."""


class AcceptanceError(CollectorError):
    """A request that is not stored. The text says why, in one line."""


class MalformedRequestError(AcceptanceError):
    """These bytes are not OTLP, whoever sends them how often."""


class TryAgainLaterError(AcceptanceError):
    """The same request may well be accepted after `retry_after_s` seconds."""

    def __init__(self, reason: str, retry_after_s: int = 1) -> None:
        super().__init__(reason)
        self.retry_after_s = retry_after_s


class QueueFullError(TryAgainLaterError):
    """Requests arrive faster than they are stored."""


class StoreUnavailableError(TryAgainLaterError):
    """ClickHouse does not answer, or fails."""


class Acceptor(Protocol):
    """Takes requests of any door, from any thread."""

    def accept(self, request: bytes) -> "Future[Outcome]":
        """Take one `ExportTraceServiceRequest`, in protobuf.

        The future resolves once its executions are stored for good, so an acknowledgement may
        be sent then, and not before. It fails with `MalformedRequestError` or `StoreUnavailableError`.
        An empty request is a success with nothing stored.

        Raises:
            MalformedRequestError: these bytes are no such request.
            QueueFullError: no room for it now.
        """
        ...
