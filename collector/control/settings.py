"""Which collector, or which store, an order is for."""

from pathlib import Path
from typing import Protocol


class ControlSettings(Protocol):
    """What giving orders needs of the command line's settings."""

    data_dir: Path
    clickhouse_url: str
    clickhouse_cluster: str
    retention: str
    otlp_http_port: int
    tls_ca: Path | None

    def own_url(self, port: int) -> str: ...
