"""Who may look: everybody on this machine; beyond it, who knows the password or whom an identity provider knows.

The password guards every request before Streamlit sees it (`dashboards.app.password_gate`); logging in by OpenID Connect
is Streamlit's own `st.login`, before any page runs (`dashboards.app.login`).
"""

import importlib.util
import tomllib
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Protocol

from collector.access.access import is_loopback
from collector.access.secret import AccessError, Secrets, given_secrets, secrets_in
from dashboards.errors import DashboardAccessError
from engine_hooks.extras import install_command

PASSWORD = "TACHOGRAPH_DASHBOARD_PASSWORD"  # noqa: S105 -- names of settings
PASSWORD_FILE = f"{PASSWORD}_FILE"
OIDC_FILE = "TACHOGRAPH_DASHBOARD_OIDC_FILE"
OIDC_KEYS = ("redirect_uri", "cookie_secret", "client_id", "client_secret", "server_metadata_url")
OWN_SECTION = "tachograph"
"""Of the file for OpenID Connect: `emails`, the patterns of those who are let in."""


class Hidden(Protocol):
    """A text that shows itself only when asked."""

    def get_secret_value(self) -> str: ...


class AccessSettings(Protocol):
    """What is to be known of who may look."""

    @property
    def dashboard_address(self) -> str: ...
    @property
    def dashboard_password(self) -> Hidden: ...
    @property
    def dashboard_password_file(self) -> Path | None: ...
    @property
    def dashboard_oidc_file(self) -> Path | None: ...


def check_access(settings: AccessSettings) -> None:
    """Refuse to let everybody in from other machines, and what cannot be used.

    Raises:
        DashboardAccessError: names the settings.
    """
    passwords = passwords_of(settings.dashboard_password.get_secret_value(), settings.dashboard_password_file)
    if settings.dashboard_oidc_file:
        if passwords:
            raise DashboardAccessError(f"{PASSWORD} and {OIDC_FILE} are both set: unset one")
        check_oidc(settings.dashboard_oidc_file)
    elif not passwords and not is_loopback(settings.dashboard_address):
        raise DashboardAccessError(
            f"dashboards on {settings.dashboard_address} let other machines in, which needs a password or a log-in: set "
            f"{PASSWORD} (or {PASSWORD_FILE}) or {OIDC_FILE}, or TACHOGRAPH_DASHBOARD_ADDRESS to 127.0.0.1"
        )


def passwords_of(text: str, file: Path | None) -> Secrets | None:
    """The password; None where none is asked for. A file is read again when it changes.

    Raises:
        DashboardAccessError: both are set, or the file cannot be used.
    """
    if text and file:
        raise DashboardAccessError(f"{PASSWORD} and {PASSWORD_FILE} are both set: unset one")
    try:
        if file:
            return secrets_in(file, PASSWORD_FILE)
        return given_secrets([text], PASSWORD) if text else None
    except AccessError as wrong:
        raise DashboardAccessError(str(wrong)) from wrong


def check_oidc(file: Path) -> None:
    """Refuse a file that Streamlit could not log anybody in by, or that lets nobody in.

    Raises:
        DashboardAccessError: names the file and what is wrong.
    """
    try:
        read = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as wrong:
        why = wrong.strerror if isinstance(wrong, OSError) else f"it is no TOML: {wrong}"
        raise DashboardAccessError(f"{OIDC_FILE}: {file} cannot be used ({why})") from wrong
    auth = read.get("auth", {})
    missing = [f"auth.{key}" for key in OIDC_KEYS if not (isinstance(auth, dict) and auth.get(key))]
    if not admitted_emails(read):
        missing.append(f'{OWN_SECTION}.emails, as ["*@example.com"]')
    if missing:
        raise DashboardAccessError(f"{OIDC_FILE}: {file} lacks {', '.join(missing)}")
    if not importlib.util.find_spec("authlib"):
        raise DashboardAccessError(f"{OIDC_FILE} needs the oidc extra: {install_command('service', 'oidc')}")


def admitted_emails(secrets: Mapping[str, Any]) -> list[str]:
    """Patterns of the addresses that are let in."""
    section = secrets.get(OWN_SECTION, {})
    emails = section.get("emails", []) if isinstance(section, Mapping) else []
    return [str(one).lower() for one in emails] if isinstance(emails, list | tuple) else []


def is_admitted(user: Mapping[str, Any], emails: list[str]) -> bool:
    """Whether whom the provider named is one of them. An address that it does not vouch for counts for nothing."""
    address = str(user.get("email") or "").lower()
    is_vouched_for = user.get("email_verified", True) in (True, "true")
    return bool(address) and is_vouched_for and any(fnmatchcase(address, pattern) for pattern in emails)
