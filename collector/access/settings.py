"""Credentials and certificate out of the command line's settings."""

from pathlib import Path
from typing import Protocol

from collector.access.access import LOCAL_NAMES, Access, Reader
from collector.access.certificate import SETTINGS, Certificate
from collector.access.secret import AccessError, Secrets, given_secrets, secrets_in


class Hidden(Protocol):
    """A text that shows itself only when asked: pydantic's `SecretStr`."""

    def get_secret_value(self) -> str: ...


class CredentialSettings(Protocol):
    """What opens the doors. Secrets come by the environment or a file, never by a flag, which everybody on the machine
    could read."""

    ingest_tokens_file: Path | None
    sql_user: str
    sql_password_file: Path | None

    @property
    def ingest_tokens(self) -> Hidden: ...

    @property
    def sql_password(self) -> Hidden: ...


class AccessSettings(CredentialSettings, Protocol):
    """With where the doors are, and their certificate."""

    listen_address: str
    reachable_as: str
    tls_certificate: Path | None
    tls_key: Path | None


def access_of(settings: AccessSettings) -> Access:
    """What the settings ask for.

    Raises:
        AccessError: a file cannot be used, or one setting contradicts another.
    """
    passwords = sql_passwords_of(settings)
    names = {name for name in (settings.listen_address, settings.reachable_as) if name}
    return Access(
        tokens=ingest_tokens_of(settings),
        reader=Reader(settings.sql_user, passwords) if passwords else None,
        certificate=_certificate_of(settings),
        own_names=LOCAL_NAMES | names,
    )


def ingest_tokens_of(settings: CredentialSettings) -> Secrets | None:
    """The tokens that senders bear; None where none is asked for. Several in the environment stand between commas."""
    text = settings.ingest_tokens.get_secret_value()
    return _one_of("TACHOGRAPH_INGEST_TOKENS", text.split(",") if text else [], settings.ingest_tokens_file)


def sql_passwords_of(settings: CredentialSettings) -> Secrets | None:
    """The password of readers; None where none is asked for."""
    text = settings.sql_password.get_secret_value()
    return _one_of("TACHOGRAPH_SQL_PASSWORD", [text] if text else [], settings.sql_password_file)


def _one_of(setting: str, values: list[str], file: Path | None) -> Secrets | None:
    if values and file:
        raise AccessError(f"{setting} and {setting}_FILE are both set: unset one")
    if file:
        return secrets_in(file, f"{setting}_FILE")
    return given_secrets(values, setting) if values else None


def _certificate_of(settings: AccessSettings) -> Certificate | None:
    if settings.tls_certificate and settings.tls_key:
        return Certificate.load(settings.tls_certificate, settings.tls_key)
    if settings.tls_certificate or settings.tls_key:
        raise AccessError(f"{SETTINGS} go together: set both, or none")
    return None
