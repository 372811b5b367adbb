"""What our own commands present when they go through the doors of a collector with the same settings."""

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol
from urllib.parse import quote, urlencode, urlsplit, urlunsplit

from collector.access.settings import AccessSettings, ingest_tokens_of, sql_passwords_of


class PresentingSettings(AccessSettings, Protocol):
    """The settings of a command that goes through the doors."""

    tls_ca: Path | None
    otlp_endpoint: str
    rows_url: str


def scheme_of(settings: AccessSettings) -> str:
    """`http` or `https`: what the doors of these settings speak."""
    return "https" if settings.tls_certificate else "http"


def with_credentials(clickhouse_url: str, settings: PresentingSettings, *, is_own: bool) -> str:
    """A ClickHouse URL with what the settings add: the password of a user named without one, the trusted certificates.

    Args:
        clickhouse_url: `http[s]://[user[:password]@]host:port/database`.
        settings: Where the password is.
        is_own: Whether it is these settings' own endpoint, so that its user is known.

    Raises:
        AccessError: the password's file cannot be read.
    """
    try:
        parts = urlsplit(clickhouse_url)
    except ValueError:  # Whoever opens it says that it is none.
        return clickhouse_url
    is_reader = is_own or (parts.username == settings.sql_user and parts.password is None)
    if is_reader and (passwords := sql_passwords_of(settings)):
        host = parts.netloc.rpartition("@")[2]
        parts = parts._replace(netloc=f"{quote(settings.sql_user, safe='')}:{quote(passwords.first(), safe='')}@{host}")
    if parts.scheme == "https" and settings.tls_ca and not parts.query:
        parts = parts._replace(query=urlencode({"ca_cert": str(settings.tls_ca)}))
    return urlunsplit(parts)


def sending_variables(settings: PresentingSettings) -> Mapping[str, str]:
    """What OTLP's exporters, and those who send computed rows, find in the environment.

    Nothing where another endpoint is named: this collector's token is not for others.

    Raises:
        AccessError: the tokens' file cannot be read.
    """
    variables = {}
    if settings.tls_ca:
        variables["TACHOGRAPH_TLS_CA"] = str(settings.tls_ca)
    tokens = ingest_tokens_of(settings)
    if tokens and not settings.rows_url:
        variables["TACHOGRAPH_INGEST_TOKEN"] = tokens.first()
    if settings.otlp_endpoint:
        return variables
    if tokens:
        variables["OTEL_EXPORTER_OTLP_HEADERS"] = f"authorization=Bearer {quote(tokens.first(), safe='')}"
    if settings.tls_ca:
        variables["OTEL_EXPORTER_OTLP_CERTIFICATE"] = str(settings.tls_ca)
    return variables
