"""What one sender, and all of them together, may ask of the doors."""

from typing import NamedTuple


class DoorLimits(NamedTuple):
    """Bounds of the doors that executions come in by."""

    request_bytes: int = 16 * 1024 * 1024
    """Largest request, decompressed: about 20,000 executions with everything recorded. gRPC's own default is 4 MiB,
    which 8,000 of them exceed."""
    request_spans: int = 100_000
    """Spans of one request. Tiny ones weigh little on the wire and much once they are parsed."""
    requests_at_once: int = 32
    """Requests in memory at a time, at each door; further ones wait, unread."""
    waiting_calls: int = 1024
    """gRPC calls that wait at a time; a further one is refused."""
    wait_s: float = 5.0
    """How long a request over HTTP waits to be read before its sender is told to come back."""
    body_s: float = 10.0
    """How long the body of a request may take to arrive."""
    idle_s: float = 300.0
    """A gRPC connection without calls is closed after so long; clients open another by themselves."""
    silent_s: float = 60.0
    """When nothing has come over a gRPC connection for so long, the peer is pinged, with calls under way or without."""
    answer_s: float = 20.0
    """A peer that leaves a ping without an answer for so long is gone, and its connection is closed."""
    ping_pause_s: float = 10.0
    """Clients may ping so often, also without calls; one that does so more often is sent away. gRPC's own default, 5 min,
    sends away exporters and load balancers that look after their connections."""
    head_bytes: int = 16 * 1024
    """Metadata of a gRPC call."""
