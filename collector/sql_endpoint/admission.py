"""Who may ask: the reader whose password is set, else everybody on this machine as ClickHouse's user without one."""

from starlette.requests import Request

from collector.access.access import Access, Refusal, basic_credentials
from collector.sql_endpoint.failures import QueryError

USER = "default"


class NotAdmittedError(QueryError):
    """Turned away before anything but the head of the request was read."""

    def __init__(self, reason: Refusal, name: str, message: str) -> None:
        super().__init__(name, message)
        self.reason = reason


def admit(request: Request, access: Access) -> None:
    """Let a request in, by whichever of ClickHouse's three ways it names its user.

    Raises:
        NotAdmittedError: neither user nor password, wrong ones, or a browser that another site led here.
    """
    if access.reader is None and access.refusal_of_host(request.headers):
        raise NotAdmittedError(
            Refusal.FOREIGN_HOST,
            "ACCESS_DENIED",
            "Access denied: a page of another site makes this request, or Host is no name of this machine; "
            "without a password this endpoint answers to localhost only",
        )
    user, password = _credentials(request)
    admitted = access.reader.admits(user or USER, password) if access.reader else (user or USER, password) == (USER, "")
    if not admitted:
        raise NotAdmittedError(
            Refusal.WRONG_CREDENTIALS if user or password else Refusal.NO_CREDENTIALS,
            "AUTHENTICATION_FAILED",
            f"{user or USER}: Authentication failed: password is incorrect, or there is no user with such name",
        )


def _credentials(request: Request) -> tuple[str, str]:
    parameters, headers = request.query_params, request.headers
    basic = ("", "")
    if header := headers.get("authorization"):
        if (found := basic_credentials(header)) is None:
            raise NotAdmittedError(
                Refusal.WRONG_CREDENTIALS, "AUTHENTICATION_FAILED", "Invalid authorization header: only Basic is known"
            )
        basic = found
    user = parameters.get("user") or headers.get("x-clickhouse-user") or basic[0]
    password = parameters.get("password") or headers.get("x-clickhouse-key") or basic[1]
    return user, password
