"""The dashboards' password, asked before anything is served: pages, files, and the connection that pages live on."""

import hmac
import secrets
from http.cookies import CookieError, SimpleCookie
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from collector.access.access import basic_credentials
from collector.access.secret import Secrets

COOKIE: Final = "tachograph"
OPEN_PATHS: Final = frozenset({"/_stcore/health"})
"""Says that something lives here, and no more."""


class PasswordGate:
    """ASGI middleware: HTTP Basic with any user name, since browsers ask for it themselves and remember it; then a
    cookie, because some do not send a password when they open a WebSocket. The cookie ends with the password, with
    this process, or with the browser."""

    def __init__(self, app: ASGIApp, passwords: Secrets) -> None:
        self._app = app
        self._passwords = passwords
        self._key = secrets.token_bytes(32)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve whom the password or the cookie lets in; refuse everybody else."""
        headers = Headers(scope=scope) if scope["type"] in ("http", "websocket") else None
        if headers is None or scope["path"] in OPEN_PATHS or self._has_cookie(headers):
            await self._app(scope, receive, send)
        elif self._knows_password(headers):
            await self._app(scope, receive, self._giving_cookie(scope, headers, send))
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            challenge = {"WWW-Authenticate": 'Basic realm="Tachograph", charset="UTF-8"', "Cache-Control": "no-store"}
            refusal = PlainTextResponse(
                "Tachograph: the password is asked for; the user name is yours.", 401, challenge
            )
            await refusal(scope, receive, send)

    def _knows_password(self, headers: Headers) -> bool:
        credentials = basic_credentials(headers.get("authorization", ""))
        return credentials is not None and self._passwords.admits(credentials[1])

    def _has_cookie(self, headers: Headers) -> bool:
        try:
            morsel = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
        except CookieError:
            return False
        given = morsel.value if morsel else ""
        return hmac.compare_digest(given.encode(errors="replace"), self._ticket().encode())

    def _ticket(self) -> str:
        return hmac.new(self._key, self._passwords.first().encode(), "sha256").hexdigest()

    def _giving_cookie(self, scope: Scope, headers: Headers, send: Send) -> Send:
        is_tls = scope["scheme"] in ("https", "wss") or headers.get("x-forwarded-proto") == "https"
        cookie = f"{COOKIE}={self._ticket()}; Path=/; HttpOnly; SameSite=Lax" + ("; Secure" if is_tls else "")

        async def giving(message: Message) -> None:
            if message["type"] in ("http.response.start", "websocket.accept"):
                message.setdefault("headers", [])
                MutableHeaders(scope=message).append("set-cookie", cookie)
            await send(message)

        return giving
