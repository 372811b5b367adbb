"""Answers of OTLP over HTTP, in the content type of their requests."""

from collections.abc import Mapping
from typing import Final

from google.protobuf.json_format import MessageToJson
from google.protobuf.message import Message
from starlette.requests import Request
from starlette.responses import Response

PROTOBUF: Final = "application/x-protobuf"
JSON: Final = "application/json"


def content_type(request: Request) -> str:
    """What a request says its body is, without parameters; empty where it says nothing."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def encoded(request: Request, message: Message, status: int, headers: Mapping[str, str] | None = None) -> Response:
    """An answer in the content type of the request; in JSON, which people can read, where that is another."""
    if content_type(request) == PROTOBUF:
        return Response(message.SerializeToString(), status, headers, media_type=PROTOBUF)
    return Response(MessageToJson(message, indent=None), status, headers, media_type=JSON)
