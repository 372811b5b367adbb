"""The seam between the doors and whatever keeps their requests: what is handed over, and what comes back.

CollectorError
└── AcceptanceError
    ├── MalformedRequestError     never send it again
    └── TryAgainLaterError        send it again after `retry_after_s`
        ├── QueueFullError
        └── StoreUnavailableError
"""

import hashlib
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from typing import NamedTuple, Protocol, Self

from collector.decoding.packing import packed, unpacked
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


class ReceivedRequest(NamedTuple):
    """One request, compressed."""

    request_id: str
    """Its identity: the hash of its bytes."""
    packed: bytes
    """Its bytes, as `packing.packed` has them."""
    size: int
    """How many bytes it has."""
    received_unix_ms: int
    door: str = ""
    """Which door it came in by: `grpc`, `http`."""
    spans: int = 0
    """How many spans it holds."""

    @classmethod
    def of(cls, request_id: str, request: bytes, received_unix_ms: int, door: str = "", spans: int = 0) -> Self:
        """Of its bytes as they came."""
        return cls(request_id, packed(request), len(request), received_unix_ms, door, spans)

    @property
    def request(self) -> bytes:
        """Its bytes, as they came."""
        return unpacked(self.packed)


def token_of(request_ids: Iterable[str]) -> str:
    """The identity of a batch, a hash of its content: by the hashes of its requests, in order."""
    return hashlib.blake2b("".join(request_ids).encode(), digest_size=16).hexdigest()


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
    """There is no room for the request: in memory, in the spool, or on its disk."""


class StoreUnavailableError(TryAgainLaterError):
    """Nothing can be kept at present, for another reason than want of room."""

    exit_code = 3


class Acceptor(Protocol):
    """Takes requests of any door, from any thread."""

    def accept(self, request: bytes, door: str) -> "Future[Outcome]":
        """Take one `ExportTraceServiceRequest`, in protobuf, that came in by a door (`grpc`, `http`).

        The future resolves once the request is on disk and it is known what becomes of its spans, so an
        acknowledgement may be sent then, and not before. It fails with `MalformedRequestError`,
        `QueueFullError` or `StoreUnavailableError`. An empty request is a success with nothing stored.

        Raises:
            MalformedRequestError: these bytes are no such request.
            QueueFullError: no room for it now.
            StoreUnavailableError: the collector is stopping.
        """
        ...
