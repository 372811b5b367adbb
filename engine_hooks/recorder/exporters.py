"""The stock OTLP exporter that the standard variables ask for."""

import os
from collections.abc import Mapping
from importlib import import_module
from typing import Final

from opentelemetry.sdk.trace.export import SpanExporter

from engine_hooks.errors import RecorderError

_VARIABLES: Final = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_PROTOCOLS: Final = ("grpc", "http/protobuf")


def protocol_of(environment: Mapping[str, str] = os.environ) -> str:
    """`grpc` (the default) or `http/protobuf`.

    Raises:
        RecorderError: the variable names another protocol.
    """
    for variable in _VARIABLES:
        protocol = environment.get(variable, "").strip().lower()
        if protocol and protocol not in _PROTOCOLS:
            raise RecorderError(f"{variable} is {protocol!r}: set it to one of {', '.join(_PROTOCOLS)}")
        if protocol:
            return protocol
    return _PROTOCOLS[0]


def open_stock_exporter() -> SpanExporter:
    """The exporter that the variables ask for; it reads the rest of `OTEL_EXPORTER_OTLP_*` itself.

    Only the one that is needed is imported, which takes about 0.1 s.

    Raises:
        RecorderError: a variable has no valid value.
    """
    package = {"grpc": "grpc", "http/protobuf": "http"}[protocol_of()]
    module = import_module(f"opentelemetry.exporter.otlp.proto.{package}.trace_exporter")
    try:
        exporter: SpanExporter = module.OTLPSpanExporter()
    except Exception as error:  # each exporter has its own ways to refuse its settings
        raise RecorderError(f"the OTLP exporter refuses its OTEL_EXPORTER_OTLP_* settings: {error}") from error
    return exporter
