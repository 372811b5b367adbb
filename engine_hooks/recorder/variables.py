"""The standard variables of OTLP exporters, as our own senders read them: those for traces before those for all.

Source: https://opentelemetry.io/docs/specs/otel/protocol/exporter/
"""

import os
from pathlib import Path

import grpc
from opentelemetry.util.re import parse_env_headers

from engine_hooks.errors import SendError

_COMPRESSIONS = {
    "": grpc.Compression.NoCompression,
    "none": grpc.Compression.NoCompression,
    "gzip": grpc.Compression.Gzip,
}


def headers() -> tuple[tuple[str, str], ...]:
    """`…_HEADERS`: what every request bears, a token among it."""
    return tuple(parse_env_headers(_variable("HEADERS")[1], liberal=True).items())


def compression() -> grpc.Compression:
    """`…_COMPRESSION`.

    Raises:
        SendError: neither `gzip` nor `none`.
    """
    name, value = _variable("COMPRESSION")
    if value.strip().lower() not in _COMPRESSIONS:
        raise SendError(f"{name} is {value!r}: set it to gzip or none")
    return _COMPRESSIONS[value.strip().lower()]


def channel_credentials() -> grpc.ChannelCredentials:
    """`…_CERTIFICATE` (whom to trust; else the system's), `…_CLIENT_KEY` and `…_CLIENT_CERTIFICATE`.

    Raises:
        SendError: one of the files cannot be read.
    """
    return grpc.ssl_channel_credentials(*map(_content, ("CERTIFICATE", "CLIENT_KEY", "CLIENT_CERTIFICATE")))


def _content(suffix: str) -> bytes | None:
    name, path = _variable(suffix)
    try:
        return Path(path).read_bytes() if path else None
    except OSError as error:
        raise SendError(f"{name}: {path} cannot be read ({error.strerror})") from error


def _variable(suffix: str) -> tuple[str, str]:
    """Its name and value; the value is empty where it is not set."""
    for name in (f"OTEL_EXPORTER_OTLP_TRACES_{suffix}", f"OTEL_EXPORTER_OTLP_{suffix}"):
        if value := os.environ.get(name, ""):
            return name, value
    return name, ""
