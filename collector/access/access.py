"""What each door asks of those who come in.

Senders bear a token. Readers (SQL, `/metrics`) have a user and a password. `/healthz`, `/readyz` and `/ping` say no
more than that something lives there, and ask nothing. Decision record 0007.
"""

import base64
import hmac
import ipaddress
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import urlsplit

from collector.access.certificate import Certificate
from collector.access.secret import AccessError, Secrets

LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})


class Refusal(StrEnum):
    """Why somebody was turned away at a door, before anything else was looked at."""

    NO_CREDENTIALS = "no_credentials"
    WRONG_CREDENTIALS = "wrong_credentials"
    FOREIGN_HOST = "foreign_host"
    """A browser was led here by another site: see `is_from_another_site`."""


Count = Callable[[str, str], object]
"""Counts somebody turned away: the door (`grpc`, `http`, `sql`), the reason."""


def count_nothing(_door: str, _reason: str) -> None:
    """A `Count` for a door that nobody watches."""


@dataclass(frozen=True)
class Reader:
    """Who may read."""

    user: str
    passwords: Secrets

    def admits(self, user: str, password: str) -> bool:
        """Whether both are right. A wrong user takes as long as a wrong password."""
        is_user = hmac.compare_digest(user.encode(errors="replace"), self.user.encode())
        return self.passwords.admits(password) and is_user


@dataclass(frozen=True)
class Access:
    """The credentials and the certificate of one collector. Nothing set: everybody on this machine, in clear text."""

    tokens: Secrets | None = None
    reader: Reader | None = None
    certificate: Certificate | None = None
    own_names: frozenset[str] = LOCAL_NAMES
    """Host names and addresses that this machine is called by, on a door without credentials."""

    @property
    def scheme(self) -> str:
        """`http` or `https`."""
        return "https" if self.certificate else "http"

    def check_address(self, listen_address: str) -> None:
        """Refuse to listen where other machines can come in and everybody would be let in.

        Raises:
            AccessError: names the settings that are missing.
        """
        missing = []
        if self.tokens is None:
            missing.append("TACHOGRAPH_INGEST_TOKENS (or TACHOGRAPH_INGEST_TOKENS_FILE)")
        if self.reader is None:
            missing.append("TACHOGRAPH_SQL_PASSWORD (or TACHOGRAPH_SQL_PASSWORD_FILE)")
        if missing and not is_loopback(listen_address):
            raise AccessError(
                f"listening on {listen_address} lets other machines in, which needs credentials: set "
                f"{' and '.join(missing)}, or TACHOGRAPH_LISTEN_ADDRESS to 127.0.0.1"
            )

    def refusal_of_sender(self, headers: Mapping[str, str]) -> Refusal | None:
        """Why this sender is turned away; None lets it in. Header names are lower case."""
        if self.tokens is None:
            return self.refusal_of_host(headers)
        scheme, _, token = headers.get("authorization", "").strip().partition(" ")
        if scheme.lower() != "bearer":
            return Refusal.NO_CREDENTIALS
        return None if self.tokens.admits(token.strip()) else Refusal.WRONG_CREDENTIALS

    def refusal_of_reader(self, headers: Mapping[str, str]) -> Refusal | None:
        """The same for a reader that knows Basic authentication only."""
        if self.reader is None:
            return self.refusal_of_host(headers)
        user, password = basic_credentials(headers.get("authorization", "")) or ("", "")
        if not (user or password):
            return Refusal.NO_CREDENTIALS
        return None if self.reader.admits(user, password) else Refusal.WRONG_CREDENTIALS

    def refusal_of_host(self, headers: Mapping[str, str]) -> Refusal | None:
        """Without credentials, a browser's requests count as its user's only if no other site made them."""
        return Refusal.FOREIGN_HOST if is_from_another_site(headers, self.own_names) else None


def basic_credentials(header: str) -> tuple[str, str] | None:
    """User and password of an `Authorization: Basic` header; None where it is none."""
    scheme, _, encoded = header.strip().partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        user, _, password = base64.b64decode(encoded.strip(), validate=True).decode().partition(":")
    except ValueError:
        return None
    return user, password


def is_loopback(address: str) -> bool:
    """Whether nobody but this machine reaches what listens there."""
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return address == "localhost"


def is_from_another_site(headers: Mapping[str, str], own_names: frozenset[str]) -> bool:
    """Whether a browser makes this request for a page that is not ours.

    A page can send requests to loopback, and by DNS rebinding read the answers: then `Host` is the page's own name.
    gRPC is safe from this: browsers cannot speak it.
    """
    hosts = [f"//{headers['host']}"] if "host" in headers else []
    if "origin" in headers:
        hosts.append(headers["origin"])
    return headers.get("sec-fetch-site") == "cross-site" or any(_name(host) not in own_names for host in hosts)


def _name(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""
