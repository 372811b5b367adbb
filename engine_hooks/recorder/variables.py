"""The standard variables of OTLP exporters, as our own client reads them: those for traces before those for all.

Source: https://opentelemetry.io/docs/specs/otel/protocol/exporter/
"""

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from opentelemetry.util.re import parse_env_headers

from engine_hooks.errors import SendError

GRPC: Final = "grpc"
HTTP: Final = "http/protobuf"
_HTTP_PATH: Final = "/v1/traces"
_TIMEOUT_S: Final = 10.0


class Files(NamedTuple):
    """Paths of PEM files; empty where none is named."""

    certificate: str
    """Whom to trust; else the system's."""
    client_key: str
    client_certificate: str


def protocol(environment: Mapping[str, str] = os.environ) -> str:
    """`…_PROTOCOL`: `grpc` (the default) or `http/protobuf`.

    Raises:
        SendError: another one.
    """
    return _one_of("PROTOCOL", (GRPC, HTTP), environment)


def grpc_endpoint() -> str:
    """`…_ENDPOINT` of a collector that speaks gRPC."""
    return _variable("ENDPOINT")[1] or "http://localhost:4317"


def http_endpoint() -> str:
    """`…_ENDPOINT` of a collector that speaks HTTP, with the path of traces unless the variable is the traces' own."""
    if own := os.environ.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", ""):
        return own
    return (_variable("ENDPOINT")[1] or "http://localhost:4318").removesuffix("/") + _HTTP_PATH


def insecure() -> bool:
    """`…_INSECURE`: no TLS for a gRPC endpoint that names neither `http` nor `https`."""
    return _one_of("INSECURE", ("false", "true")) == "true"


def headers() -> tuple[tuple[str, str], ...]:
    """`…_HEADERS`: what every request bears, a token among it."""
    return tuple(parse_env_headers(_variable("HEADERS")[1], liberal=True).items())


def gzip_asked() -> bool:
    """`…_COMPRESSION`.

    Raises:
        SendError: neither `gzip` nor `none`.
    """
    return _one_of("COMPRESSION", ("none", "gzip")) == "gzip"


def timeout_s() -> float:
    """`…_TIMEOUT`: seconds that one attempt at a request may take.

    Raises:
        SendError: no number above 0.
    """
    name, value = _variable("TIMEOUT")
    try:
        seconds = float(value or _TIMEOUT_S)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise SendError(f"{name} is {value!r}: set it to a number of seconds above 0")
    return seconds


def files() -> Files:
    """`…_CERTIFICATE`, `…_CLIENT_KEY` and `…_CLIENT_CERTIFICATE`.

    Raises:
        SendError: one of the files cannot be read.
    """
    return Files(*map(_readable, ("CERTIFICATE", "CLIENT_KEY", "CLIENT_CERTIFICATE")))


def _readable(suffix: str) -> str:
    name, path = _variable(suffix)
    try:
        if path:
            Path(path).read_bytes()
    except OSError as error:
        raise SendError(f"{name}: {path} cannot be read ({error.strerror})") from error
    return path


def _one_of(suffix: str, values: tuple[str, ...], environment: Mapping[str, str] = os.environ) -> str:
    """A variable's value, the first of `values` if it is not set."""
    name, value = _variable(suffix, environment)
    chosen = value.strip().lower() or values[0]
    if chosen not in values:
        raise SendError(f"{name} is {value!r}: set it to {' or '.join(values)}")
    return chosen


def _variable(suffix: str, environment: Mapping[str, str] = os.environ) -> tuple[str, str]:
    """Its name and value; the value is empty where it is not set."""
    for name in (f"OTEL_EXPORTER_OTLP_TRACES_{suffix}", f"OTEL_EXPORTER_OTLP_{suffix}"):
        if value := environment.get(name, ""):
            return name, value
    return name, ""
