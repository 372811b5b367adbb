"""Requests as bytes: are they OTLP at all, what identifies them, how ClickHouse takes them.

No span is touched in Python here: ClickHouse decodes them. What it cannot read would sink
a whole batch, so each request is parsed once, by upb, before it is accepted.
"""

import hashlib
from functools import cache
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor import FileDescriptor
from google.protobuf.message import DecodeError, Message
from google.protobuf.unknown_fields import UnknownFieldSet
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2

from collector.acceptance import MalformedRequestError

REQUEST_SCHEMA = Path(__file__).parent / "otlp.proto"
"""What ClickHouse reads of a request."""

REQUEST_ID_FIELD = 15000
RECEIVED_UNIX_MS_FIELD = 15001
_VARINT, _LENGTH_DELIMITED = 0, 2
_ONE_BYTE = [bytes([number]) for number in range(0x80)]


def _files_below(file: FileDescriptor) -> list[FileDescriptor]:
    """A descriptor file after everything it imports."""
    below = [deeper for dependency in file.dependencies for deeper in _files_below(dependency)]
    return [*below, file]


def _strings_as_bytes(message: descriptor_pb2.DescriptorProto) -> None:
    for field in message.field:
        if field.type == field.TYPE_STRING:
            field.type = field.TYPE_BYTES
    for nested in message.nested_type:
        _strings_as_bytes(nested)


@cache
def request_class() -> type[Message]:
    """`ExportTraceServiceRequest` with every `string` read as `bytes`, which is the same on the wire.

    A span with invalid UTF-8 then does not sink the request it came in.
    """
    pool = descriptor_pool.DescriptorPool()
    for file in _files_below(trace_service_pb2.DESCRIPTOR):
        proto = descriptor_pb2.FileDescriptorProto()
        file.CopyToProto(proto)
        for message in proto.message_type:
            _strings_as_bytes(message)
        pool.Add(proto)
    name = trace_service_pb2.ExportTraceServiceRequest.DESCRIPTOR.full_name
    message_class: type[Message] = message_factory.GetMessageClass(pool.FindMessageTypeByName(name))
    return message_class


def spans_of(request: bytes) -> int:
    """How many spans a request holds; raises as `parsed` does."""
    return sum(len(scope.spans) for resource in parsed(request).resource_spans for scope in resource.scope_spans)


def parsed(request: bytes) -> Any:
    """A request as a message of `request_class`.

    Raises:
        MalformedRequestError: these bytes are no `ExportTraceServiceRequest`; the text says why.
    """
    try:
        message: Any = request_class().FromString(request)
    except DecodeError as wrong:
        raise MalformedRequestError("the body is not a protobuf ExportTraceServiceRequest") from wrong
    if request and not message.resource_spans and len(UnknownFieldSet(message)):
        # Random bytes may pass for an empty message with fields of the future. Nothing of them could be kept.
        raise MalformedRequestError("the body holds no field of an ExportTraceServiceRequest")
    return message


def request_id_of(request: bytes) -> str:
    """Identity of a request by content (half of its SHA-256, hex): the same bytes sent again are the same request.

    SHA-256 because processors have it built in: half the time of BLAKE2b.
    """
    return hashlib.sha256(request).hexdigest()[:32]


def varint(number: int) -> bytes:
    """A non-negative integer in protobuf's variable length."""
    if number <= 0x7F:  # Nearly all lengths and tags of OTLP/JSON.
        return _ONE_BYTE[number]
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def marks(request_bytes: int, request_id: str, received_unix_ms: int) -> tuple[bytes, bytes]:
    """What makes a request of so many bytes one row of ClickHouse's `Protobuf` format: what goes before it, a length, and
    what goes after it, the collector's own fields. The request itself is not copied.

    Concatenated protobuf messages merge, and of a field given twice the last counts, so that
    appending is enough, whatever a sender put there.
    """
    identity = request_id.encode()
    own_fields = (
        varint(REQUEST_ID_FIELD << 3 | _LENGTH_DELIMITED)
        + varint(len(identity))
        + identity
        + varint(RECEIVED_UNIX_MS_FIELD << 3 | _VARINT)
        + varint(received_unix_ms)
    )
    return varint(request_bytes + len(own_fields)), own_fields
