"""OTLP over HTTP, binary."""

import gzip
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

import requests
from google.protobuf.message import DecodeError
from google.rpc.status_pb2 import Status

from engine_hooks.errors import SendError
from engine_hooks.recorder import variables
from engine_hooks.recorder.connection import Answer, NotTakenError

_RETRYABLE: Final = {429, 502, 503, 504}
"""Source: https://opentelemetry.io/docs/specs/otlp/#retryable-response-codes."""
_GZIP_LEVEL: Final = 6


class HttpConnection:
    """A kept-alive session with one URL."""

    def __init__(self, endpoint: str) -> None:
        """Set up by the variables `OTEL_EXPORTER_OTLP_*`; connects with the first request.

        Raises:
            SendError: one of them cannot be used.
        """
        if not endpoint.startswith(("http://", "https://")):
            raise SendError(f"{endpoint!r} is no OTLP endpoint: set OTEL_EXPORTER_OTLP_ENDPOINT to http://host:4318")
        self.endpoint = endpoint
        files = variables.files()
        self._gzip = variables.gzip_asked()
        self._session = requests.Session()
        self._session.headers.update(variables.headers())
        self._session.headers["Content-Type"] = "application/x-protobuf"
        if self._gzip:
            self._session.headers["Content-Encoding"] = "gzip"
        # By argument, not as the session's own: there REQUESTS_CA_BUNDLE would win.
        self._verify = files.certificate or None
        if files.client_certificate:
            self._session.cert = (files.client_certificate, files.client_key or files.client_certificate)

    def post(self, body: bytes, timeout_s: float) -> Answer:
        sent = gzip.compress(body, _GZIP_LEVEL, mtime=0) if self._gzip else body
        try:
            answer = self._session.post(
                self.endpoint, sent, timeout=timeout_s, verify=self._verify, allow_redirects=False
            )
        except requests.RequestException as error:
            # A URL or header that cannot be used is a ValueError too, and stays so.
            raise NotTakenError("no answer", str(error), retryable=not isinstance(error, ValueError)) from error
        if answer.status_code != requests.codes.ok:
            raise NotTakenError(
                f"HTTP {answer.status_code}",
                _message(answer),
                retryable=answer.status_code in _RETRYABLE,
                retry_after_s=_retry_after_s(answer.headers.get("Retry-After", "")),
            )
        return Answer.of(answer.content)

    def close(self) -> None:
        self._session.close()


def _message(answer: requests.Response) -> str:
    """What the collector says of an error: a `Status` in protobuf, or whatever stands there."""
    try:
        return str(Status.FromString(answer.content).message)
    except DecodeError:
        return answer.reason or ""


def _retry_after_s(value: str) -> float | None:
    """`Retry-After`: seconds, or a date."""
    if value.isdecimal():
        return float(value)
    try:
        return max((parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds(), 0.0)
    except (ValueError, TypeError):
        return None
