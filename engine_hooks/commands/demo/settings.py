"""What the commands of `tachograph demo` need of the settings."""

from typing import Protocol


class SendingSettings(Protocol):
    """Where executions are sent."""

    @property
    def otlp_endpoint(self) -> str:
        """OTLP over gRPC: `http://127.0.0.1:4317`."""
