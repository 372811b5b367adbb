"""A running collector's doors, as those outside see them: what they answer to us, and to somebody without credentials."""

import base64
import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import grpc

from collector.access.settings import ingest_tokens_of, sql_passwords_of
from collector.doctor.settings import DoctorSettings
from collector.errors import CollectorError
from collector.receivers.otlp_grpc import EXPORT

_TIMEOUT_S: Final = 10.0


class NotRunningError(CollectorError):
    """No collector answers: there is nothing to look at."""


class Answer(NamedTuple):
    """What came back over HTTP."""

    status: int
    body: Mapping[str, Any]
    """Empty where it is no JSON object."""


class Doors:
    """The doors of the collector that the settings name."""

    def __init__(self, settings: DoctorSettings) -> None:
        self.http_url = settings.rows_url.rstrip("/")
        self.grpc_url = settings.otlp_endpoint
        self.tokens_are_set = bool(tokens := ingest_tokens_of(settings))
        self.password_is_set = bool(passwords := sql_passwords_of(settings))
        self._bearer = {"authorization": f"Bearer {tokens.first()}"} if tokens else {}
        self._basic = _basic(settings.sql_user, passwords.first()) if passwords else {}
        self._ca = settings.tls_ca
        if not self.http_url.startswith(("http://", "https://")):
            raise NotRunningError(f"{self.http_url} is no URL of a collector: it looks like http://127.0.0.1:4318")

    def read(self, path: str, *, anonymously: bool = False) -> Answer:
        """GET one of the collector's pages, as a reader.

        Raises:
            NotRunningError: nothing answers there.
        """
        request = urllib.request.Request(self.http_url + path)  # noqa: S310 -- http or https, see above
        return self._ask(request, {} if anonymously else self._basic)

    def send_nothing(self, *, anonymously: bool = False) -> Answer:
        """Send a request without spans, as a sender: accepted, and without effect.

        Raises:
            NotRunningError: nothing answers there.
        """
        request = urllib.request.Request(  # noqa: S310 -- likewise
            f"{self.http_url}/v1/traces", b"", {"content-type": "application/x-protobuf"}, method="POST"
        )
        return self._ask(request, {} if anonymously else self._bearer)

    def send_nothing_by_grpc(self) -> str:
        """The same over gRPC: `OK`, or the name of the status."""
        place = urlsplit(self.grpc_url)
        with self._channel(f"{place.hostname}:{place.port or 4317}", place.scheme == "https") as channel:
            try:
                channel.unary_unary(EXPORT)(b"", timeout=_TIMEOUT_S, metadata=tuple(self._bearer.items()))
            except grpc.RpcError as refusal:
                return str(refusal.code().name)
        return "OK"

    def _channel(self, target: str, is_tls: bool) -> grpc.Channel:
        if not is_tls:
            return grpc.insecure_channel(target)
        return grpc.secure_channel(target, grpc.ssl_channel_credentials(self._ca.read_bytes() if self._ca else None))

    def _ask(self, request: urllib.request.Request, headers: Mapping[str, str]) -> Answer:
        for name, value in headers.items():
            request.add_header(name, value)
        context = ssl.create_default_context(cafile=self._ca) if self.http_url.startswith("https:") else None
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT_S, context=context) as answer:  # noqa: S310
                return Answer(answer.status, _json(answer.read()))
        except urllib.error.HTTPError as refusal:
            with refusal:
                return Answer(refusal.code, _json(refusal.read()))
        except (OSError, ValueError) as error:
            raise NotRunningError(
                f"no collector answers at {self.http_url} ({getattr(error, 'reason', error)}): "
                "start one with `tachograph collect`, or name another by TACHOGRAPH_OTLP_HTTP_PORT"
            ) from error


def _json(body: bytes) -> Mapping[str, Any]:
    try:
        read = json.loads(body)
    except ValueError:
        return {}
    return read if isinstance(read, dict) else {}


def _basic(user: str, password: str) -> dict[str, str]:
    return {"authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}
