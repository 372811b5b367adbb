"""HTTP servers by URL, whose user part is their basic authentication and whose path may be a secret."""

import base64
import hashlib
import http.client
import json
import os
import re
import ssl
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import unquote, urlsplit, urlunsplit

from queries.alerts.delivery.errors import ReceiverAwayError, ReceiverRefusedError
from queries.errors import CallError
from queries.rows import CA_VARIABLE

TIMEOUT_S: Final = 10.0
"""For the connection, and for each pause of the answer."""
ANSWER_BYTES_MAX: Final = 16 * 1024**2
_RETRIED: Final = (408, 425, 429)
_BETWEEN_URLS: Final = re.compile(r"[\s,]+(?=[A-Za-z][A-Za-z0-9+.-]*://)")


def urls_in(text: str) -> list[str]:
    """The URLs of a setting, separated by commas or spaces; those within a URL are its own."""
    return [url for part in _BETWEEN_URLS.split(text) if (url := part.strip(" \t\r\n,"))]


def mark_of(url: str) -> str:
    """Tells two URLs of one server apart without showing either."""
    return hashlib.sha256(url.encode()).hexdigest()[:8]


@dataclass(frozen=True)
class Endpoint:
    """One server. Safe to share between threads: every question has a connection of its own."""

    shown: str
    """Scheme, host and port: what may be said of it."""
    url: str = field(repr=False)
    authorization: str | None = field(repr=False)
    timeout_s: float = TIMEOUT_S

    def ask(self, method: str, path: str = "", body: Any = None) -> bytes:
        """The answer to one request; a body is sent as JSON.

        Redirects are not followed: a POST would lose its body on the way.

        Raises:
            ReceiverAwayError: no answer in time, or one that says to come back.
            ReceiverRefusedError: any other answer than a success.
        """
        try:
            with _opener().open(self._request(method, path, body), timeout=self.timeout_s) as answer:
                return bytes(answer.read(ANSWER_BYTES_MAX))
        except urllib.error.HTTPError as refusal:
            with refusal:
                raise self._refusal(refusal) from None
        except (OSError, http.client.HTTPException) as wrong:
            why = getattr(wrong, "reason", None) or wrong
            raise ReceiverAwayError(f"{self.shown} does not answer ({_first_line(why)})") from None

    def _request(self, method: str, path: str, body: Any) -> urllib.request.Request:
        headers = {"User-Agent": "tachograph", "Accept": "application/json"}
        if self.authorization:
            headers["Authorization"] = self.authorization
        content = None
        if body is not None:
            headers["Content-Type"] = "application/json"
            content = json.dumps(body, allow_nan=False).encode()
        return urllib.request.Request(self.url + path, data=content, headers=headers, method=method)  # noqa: S310 -- http or https, see `endpoint`

    def _refusal(self, refusal: urllib.error.HTTPError) -> ReceiverAwayError | ReceiverRefusedError:
        code = refusal.code
        if code >= 500 or code in _RETRIED:
            return ReceiverAwayError(f"{self.shown} answers {code} ({_said(refusal)})")
        if 300 <= code < 400:
            return ReceiverRefusedError(f"{self.shown} answers {code}: it has moved, name its new URL")
        if code in (401, 403):
            return ReceiverRefusedError(f"{self.shown} answers {code}: its URL needs other credentials, user:password@")
        return ReceiverRefusedError(f"{self.shown} answers {code} ({_said(refusal)})")


def endpoint(url: str, *, timeout_s: float = TIMEOUT_S) -> Endpoint:
    """The server of a URL, `http[s]://[user:password@]host[:port][/path]`.

    https is verified against the system's certificates and those of `TACHOGRAPH_TLS_CA`.

    Raises:
        CallError: it is none of that form.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise CallError("a receiver's URL has a wrong host or port: it looks like https://host:9093") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise CallError(f"a receiver's URL begins with {parts.scheme or 'nothing'}: it looks like https://host:9093")
    host = parts.netloc.rpartition("@")[2]
    return Endpoint(
        shown=f"{parts.scheme}://{host}",
        url=urlunsplit(parts._replace(netloc=host, fragment="")),
        authorization=_basic(parts.username, parts.password),
        timeout_s=timeout_s,
    )


def _basic(username: str | None, password: str | None) -> str | None:
    if username is None:
        return None
    presented = f"{unquote(username)}:{unquote(password or '')}"
    return f"Basic {base64.b64encode(presented.encode()).decode()}"


class _Unmoved(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def _opener() -> urllib.request.OpenerDirector:
    trusting = ssl.create_default_context()
    if file := os.environ.get(CA_VARIABLE):
        try:
            trusting.load_verify_locations(file)
        except OSError:
            raise ReceiverRefusedError(f"{CA_VARIABLE}: {file} holds no certificates in PEM") from None
    return urllib.request.build_opener(_Unmoved, urllib.request.HTTPSHandler(context=trusting))


def _said(refusal: urllib.error.HTTPError) -> str:
    """What the server says of it: its JSON's message, or its first line."""
    try:
        text = refusal.read(4096).decode(errors="replace").strip()
    except (OSError, http.client.HTTPException):
        text = ""
    try:
        told = json.loads(text)
    except ValueError:
        told = text
    return _first_line(told.get("message", text) if isinstance(told, dict) else told) or str(refusal.reason)


def _first_line(said: object) -> str:
    lines = str(said).strip().splitlines()
    return lines[0][:200] if lines else ""
