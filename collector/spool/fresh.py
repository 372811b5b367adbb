"""Requests that came in just now, in memory beside their place on disk: most are stored within a second, and then need not be
read back, which would cost a tenth of what a collector spends on them where ClickHouse is elsewhere."""

from typing import Final

_BYTES_MAX: Final = 64 * 1024 * 1024


class FreshRequests:
    """A bounded number of bytes; what does not fit is read from disk. Its user sees to it that calls take turns."""

    def __init__(self, bytes_max: int = _BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._requests: dict[str, bytes] = {}
        self._bytes = 0

    def keep(self, request_id: str, request: bytes) -> None:
        """Where there is room."""
        if request_id not in self._requests and self._bytes + len(request) <= self._bytes_max:
            self._requests[request_id] = request
            self._bytes += len(request)

    def get(self, request_id: str) -> bytes | None:
        """A request that is here."""
        return self._requests.get(request_id)

    def forget(self, request_id: str) -> None:
        """It is stored, or set aside."""
        self._bytes -= len(self._requests.pop(request_id, b""))
