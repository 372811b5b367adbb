"""OTLP/JSON to OTLP protobuf, so that both take one path.

As OTLP's specification has it: lowerCamelCase keys, ids in hex of either case, enumerations as
integers, 64-bit integers as strings or numbers, unknown keys ignored. A time below zero is kept,
for the contract to refuse that one span; text that is not UTF-8 stays invalid, likewise.

Source: https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding
"""

import base64
import json
import re
import struct
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any, Final, NoReturn

import orjson
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

from collector.acceptance import MalformedRequestError
from collector.decoding.wire import varint

Encoder = Callable[[Any], bytes]
_HEX_FIELDS = {"trace_id", "span_id", "parent_span_id"}
_WIRE_VARINT, _WIRE_64, _WIRE_BYTES, _WIRE_32 = 0, 1, 2, 5
_INTEGER = re.compile(r"-?[0-9]+")
_KEPT_CHARACTERS_MAX: Final = 128
"""Longer keys and texts are not kept for the next time they come, so that what is kept has a bound."""
_COMPLAINT_CHARACTERS_MAX: Final = 400
"""A longer complaint gets no more names."""
_NAMED: Final = {"KeyValue": ("attribute", "key"), "Span": ("span", "name")}
"""Messages that a sender knows by name: what they are called, and the JSON key that names one."""
_DOUBLE = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?|NaN|-?Infinity")


def protobuf_from_json(body: bytes) -> bytes:
    """The same request in protobuf.

    Raises:
        MalformedRequestError: it is not JSON, or a value is not of its field's kind; the text says which.
    """
    request = _parsed(body)
    if not isinstance(request, dict):
        raise MalformedRequestError("the body is JSON, but not an object")
    try:
        return _encode_message(trace_service_pb2.ExportTraceServiceRequest.DESCRIPTOR, request)
    except RecursionError:
        raise MalformedRequestError("the body's values are nested too deeply") from None


def _parsed(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        pass
    # Slower, for a body with broken text in it: the good spans of it are not lost. Wrong syntax fails here again.
    try:
        return json.loads(body.decode("utf-8", "surrogateescape"), parse_constant=_no_constant)
    except (ValueError, RecursionError) as wrong:
        raise MalformedRequestError(f"the body is not JSON: {wrong}".encode("ascii", "replace").decode()) from None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} stands without quotes")


def _encode_message(message: Descriptor, value: dict[str, Any]) -> bytes:
    fields = _fields(message)
    parts: list[bytes] = []
    for key, given in value.items():
        field = fields.get(key)
        if field is None or given is None:
            continue
        tag, encode, repeated = field
        try:
            for item in _items(given) if repeated else (given,):
                parts += (tag, encode(item))
        except MalformedRequestError as wrong:
            raise MalformedRequestError(_placed(str(wrong), message, value)) from None
        except (TypeError, ValueError, OverflowError, struct.error, AttributeError):
            raise MalformedRequestError(_placed(_complaint(message, key, given), message, value)) from None
    return b"".join(parts)


def _placed(complaint: str, message: Descriptor, value: dict[str, Any]) -> str:
    """The complaint, and of which attribute or span it is, where this is one. Not without end, because values nest."""
    word, key = _NAMED.get(message.name, ("", ""))
    name = value.get(key)
    named = isinstance(name, str) and len(complaint) <= _COMPLAINT_CHARACTERS_MAX
    return f"{complaint}, of {word} {_shown(name)}" if named else complaint


def _complaint(message: Descriptor, key: str, given: object) -> str:
    return f"{message.name}.{key} has a value of the wrong kind: {_shown(given)}"


def _shown(given: object) -> str:
    shown = ascii(given)
    return shown if len(shown) <= 60 else shown[:60] + "..."


def _items(given: object) -> list[Any]:
    if not isinstance(given, list):
        raise TypeError
    return given


@cache
def _fields(message: Descriptor) -> dict[str, tuple[bytes, Encoder, bool]]:
    """By JSON key: tag on the wire, encoder of one value, and whether a list is due."""
    fields = {}
    for field in message.fields:
        wire_type, encode = _encoder(field)
        fields[field.json_name] = (varint(field.number << 3 | wire_type), encode, field.is_repeated)
    return fields


def _encoder(field: FieldDescriptor) -> tuple[int, Encoder]:
    """Wire type and encoder of a field's values."""
    if field.type == field.TYPE_MESSAGE:
        return _WIRE_BYTES, _submessage_encoder(field.message_type)
    if field.type == field.TYPE_BYTES:
        return _WIRE_BYTES, _hex if field.name in _HEX_FIELDS else _base64
    return _SCALARS[field.type]


def _submessage_encoder(message: Descriptor) -> Encoder:
    if message is KeyValue.DESCRIPTOR:
        return lambda value: _plain_attribute(value) or _any_submessage_encoder(message)(value)
    return _any_submessage_encoder(message)


@cache
def _any_submessage_encoder(message: Descriptor) -> Encoder:
    def encode(value: Any) -> bytes:
        if not isinstance(value, dict):
            raise TypeError
        return _length_prefixed(_encode_message(message, value))

    return encode


def _plain_attribute(value: Any) -> bytes | None:
    """A key and a scalar of its own type, nothing else, in one go: nearly all of a request. `None` for anything else."""
    try:
        key, held = value["key"], value["value"]
        ((kind, content),) = held.items()
        if len(value) != 2 or type(key) is not str or len(key) > _KEPT_CHARACTERS_MAX:
            return None
        if kind == "stringValue" and type(content) is str and len(content) <= _KEPT_CHARACTERS_MAX:
            return _text_attribute(key, content)
        encoded = _PLAIN[type(content), kind](content)
    except (TypeError, KeyError, ValueError, AttributeError):
        return None  # Whoever encodes it field by field says what is wrong.
    return _length_prefixed(_encoded_key(key) + _length_prefixed(encoded))


@lru_cache(maxsize=4096)
def _text_attribute(key: str, text: str) -> bytes:
    return _length_prefixed(_encoded_key(key) + _length_prefixed(_PLAIN[str, "stringValue"](text)))


@lru_cache(maxsize=1024)
def _encoded_key(key: str) -> bytes:
    """The key's field, and the tag of the value's."""
    key_tag, value_tag = (_fields(KeyValue.DESCRIPTOR)[name][0] for name in ("key", "value"))
    return key_tag + _text(key) + value_tag


def _length_prefixed(encoded: bytes) -> bytes:
    return varint(len(encoded)) + encoded


def _text(value: Any) -> bytes:
    return _length_prefixed(value.encode("utf-8", "surrogatepass"))


def _hex(value: Any) -> bytes:
    return _length_prefixed(bytes.fromhex(value))


def _base64(value: Any) -> bytes:
    return _length_prefixed(base64.b64decode(value, validate=True))


def _integer(value: Any, low: int, high: int) -> int:
    """An integer that proto3's JSON allows: a number, a decimal string, or a float without a fraction."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise TypeError
    if isinstance(value, str) and not _INTEGER.fullmatch(value):
        raise ValueError
    number = int(value)
    if (isinstance(value, float) and number != value) or not low <= number <= high:
        raise ValueError
    return number


def _int64(value: Any) -> bytes:
    return varint(_integer(value, -(2**63), 2**63 - 1) & (2**64 - 1))


def _int32(value: Any) -> bytes:
    return varint(_integer(value, -(2**31), 2**31 - 1) & (2**64 - 1))


def _uint32(value: Any) -> bytes:
    return varint(_integer(value, 0, 2**32 - 1))


def _fixed64(value: Any) -> bytes:
    return (_integer(value, -(2**63), 2**64 - 1) & (2**64 - 1)).to_bytes(8, "little")


def _fixed32(value: Any) -> bytes:
    return _integer(value, 0, 2**32 - 1).to_bytes(4, "little")


def _enumeration(value: Any) -> bytes:
    if isinstance(value, str):  # OTLP allows the integer only.
        raise TypeError
    return _int32(value)


def _bool(value: Any) -> bytes:
    if not isinstance(value, bool):
        raise TypeError
    return b"\x01" if value else b"\x00"


def _double(value: Any) -> bytes:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise TypeError
    if isinstance(value, str) and not _DOUBLE.fullmatch(value):
        raise ValueError
    return struct.pack("<d", float(value))


_SCALARS: dict[int, tuple[int, Encoder]] = {
    FieldDescriptor.TYPE_STRING: (_WIRE_BYTES, _text),
    FieldDescriptor.TYPE_BOOL: (_WIRE_VARINT, _bool),
    FieldDescriptor.TYPE_ENUM: (_WIRE_VARINT, _enumeration),
    FieldDescriptor.TYPE_INT64: (_WIRE_VARINT, _int64),
    FieldDescriptor.TYPE_INT32: (_WIRE_VARINT, _int32),
    FieldDescriptor.TYPE_UINT32: (_WIRE_VARINT, _uint32),
    FieldDescriptor.TYPE_FIXED64: (_WIRE_64, _fixed64),
    FieldDescriptor.TYPE_FIXED32: (_WIRE_32, _fixed32),
    FieldDescriptor.TYPE_DOUBLE: (_WIRE_64, _double),
}


def _tagged(kind: str) -> Encoder:
    tag, encode, _ = _fields(AnyValue.DESCRIPTOR)[kind]
    return lambda content: tag + encode(content)


_PLAIN: Final[dict[tuple[type, str], Encoder]] = {
    (held, kind): _tagged(kind)
    for held, kind in (
        (str, "stringValue"),
        (bool, "boolValue"),
        (int, "intValue"),
        (str, "intValue"),
        (float, "doubleValue"),
        (int, "doubleValue"),
    )
}
"""How the content of a scalar is encoded, by its Python type and JSON key."""
