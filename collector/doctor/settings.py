"""What the doctor needs of the command line's settings."""

from pathlib import Path
from typing import Protocol

from collector.access.settings import CredentialSettings


class DoctorSettings(CredentialSettings, Protocol):
    """Every URL is filled in."""

    rows_url: str
    otlp_endpoint: str
    clickhouse_url: str
    tls_ca: Path | None
