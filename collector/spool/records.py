"""What the spool hands out: batches, its ledger, its state."""

from enum import Enum
from typing import NamedTuple

from collector.acceptance import ReceivedRequest


class Kept(Enum):
    """How the spool took a request that has no outcome yet."""

    NEW = "new"
    AGAIN = "again"
    """These bytes wait already, or are set aside."""


class Batch(NamedTuple):
    """Requests of one insert, in order. Fixed on disk before the first attempt."""

    first_position: int
    last_position: int
    token: str
    """Hash of what is in it: for the same insert again, the same."""
    requests: list[ReceivedRequest]
    attempted: bool
    """A process before this one may have inserted it."""


class Ledger(NamedTuple):
    """What became of every span that was accepted at one door, since the spool was made. Counts of spans."""

    received: int = 0
    """Accepted: on disk before they were acknowledged."""
    stored: int = 0
    deduplicated: int = 0
    """Came before: in the same request, or as the same span in another."""
    refused: int = 0
    """Break the contract."""
    set_aside: int = 0
    """In requests that ClickHouse refuses as a whole; less those that are tried again."""
    other_spans: int = 0
    """No graph executions."""
    pending: int = 0
    """Wait to be stored."""

    @property
    def adds_up(self) -> bool:
        return self.received == sum(self[1:])


class SpoolState(NamedTuple):
    """What waits."""

    pending_requests: int = 0
    pending_bytes: int = 0
    oldest_unix_ms: int | None = None
    """Arrival of the oldest request that waits."""
    set_aside_requests: int = 0
    set_aside_bytes: int = 0


class SpoolLimits(NamedTuple):
    """Bounds of the spool."""

    bytes_max: int = 10 * 1024**3
    """Requests that wait and that are set aside, together. Beyond it, requests are turned away. 0 is no bound."""
    free_bytes_min: int = 1024**3
    """What is left free on the disk. Below it, requests are turned away. 0 is the disk to its last byte."""
    answered_max: int = 1_000_000
    """Requests whose outcome is remembered, about 100 bytes each; ClickHouse remembers as well, for 7 days."""
    answered_s: int = 7 * 86400
    """How long they are remembered."""
