"""Who may come in by the HTTP port, decided before anything of a request is read."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from google.rpc.code_pb2 import PERMISSION_DENIED, UNAUTHENTICATED
from google.rpc.status_pb2 import Status
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from collector.access.access import Access, Count, Refusal
from collector.control.giving import CONTROL_PATH
from collector.receivers.encoding import encoded

_OPEN: Final = frozenset({"/healthz", "/readyz"})
_READERS: Final = frozenset({"/metrics", "/state"})


class _Told(NamedTuple):
    """How a refusal is told."""

    http_status: int
    grpc_code: int
    message: str


SENDER: Final[Mapping[Refusal, _Told]] = {
    Refusal.NO_CREDENTIALS: _Told(
        401, UNAUTHENTICATED, "a token is needed: send the header Authorization: Bearer TOKEN"
    ),
    Refusal.WRONG_CREDENTIALS: _Told(401, UNAUTHENTICATED, "this token is not one of the collector's"),
    Refusal.FOREIGN_HOST: _Told(
        403,
        PERMISSION_DENIED,
        "a page of another site makes this request, or Host is no name of this machine: "
        "without credentials the collector answers to localhost only",
    ),
}
READER: Final[Mapping[Refusal, _Told]] = {
    **SENDER,
    Refusal.NO_CREDENTIALS: _Told(401, UNAUTHENTICATED, "user and password of the SQL endpoint are needed, as Basic"),
    Refusal.WRONG_CREDENTIALS: _Told(401, UNAUTHENTICATED, "wrong user or password"),
}


class GuardedHttp:
    """An ASGI application behind its guard: senders bear a token, `/metrics` and `/state` take a reader's password, health is open.

    A path that is not named here is a sender's.
    """

    def __init__(self, app: ASGIApp, access: Access, count: Count) -> None:
        self._app = app
        self._access = access
        self._count = count

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = self._refusal(scope) if scope["type"] == "http" else None
        if refusal is None:
            await self._app(scope, receive, send)
            return
        self._count("http", refusal)
        # The body stays unread: the server throws away what still comes.
        await _answer(Request(scope), refusal)(scope, receive, send)

    def _refusal(self, scope: Scope) -> Refusal | None:
        path, headers = scope["path"], Request(scope).headers
        if path in _OPEN:
            return None
        if path.startswith(f"{CONTROL_PATH}/"):  # It looks at its key itself; a browser bears none.
            return None
        if path in _READERS:
            return self._access.refusal_of_reader(headers)
        return self._access.refusal_of_sender(headers)


def _answer(request: Request, refusal: Refusal) -> Response:
    is_reader = request.url.path in _READERS
    told = (READER if is_reader else SENDER)[refusal]
    headers = {"WWW-Authenticate": 'Basic realm="tachograph"' if is_reader else "Bearer"}
    status = Status(code=told.grpc_code, message=told.message)
    return encoded(request, status, told.http_status, headers if told.http_status == 401 else {})
