"""Protobuf's wire format, as far as OTLP's trace requests need it.

Source: https://protobuf.dev/programming-guides/encoding/ and opentelemetry-proto's `common.proto`.
"""

from collections.abc import Sequence
from struct import Struct
from typing import Any, Final

from engine_hooks.errors import ContractError

_UINT64: Final = (1 << 64) - 1
_HIGHEST_INT64: Final = (1 << 63) - 1
_double: Final = Struct("<d").pack

_STRING_VALUE, _BOOL_VALUE, _INT_VALUE, _DOUBLE_VALUE, _ARRAY_VALUE = b"\x0a", b"\x10", b"\x18", b"\x21", b"\x2a"
_ARRAY_ITEM, _KEY, _VALUE = b"\x0a", b"\x0a", b"\x12"


def varint(value: int) -> bytes:
    """An unsigned number, seven bits a byte, the lowest first; a negative one as its two's complement of 64 bits."""
    if 0 <= value < 128:
        return _ONE_BYTE[value]
    value &= _UINT64
    groups = []
    while value > 127:
        groups.append(value & 127 | 128)
        value >>= 7
    groups.append(value)
    return bytes(groups)


_ONE_BYTE: Final = tuple(bytes([value]) for value in range(128))


def delimited(tag: bytes, content: bytes) -> bytes:
    """A field of text, bytes or a message: its tag, its length and itself."""
    return tag + varint(len(content)) + content


def key_field(key: str) -> bytes:
    """The key of a `KeyValue`."""
    return delimited(_KEY, _utf8(key))


def key_value(tag: bytes, key: bytes, value: bytes) -> bytes:
    """A field that is a `KeyValue`, of what `key_field` and `any_value` gave."""
    return delimited(tag, key + delimited(_VALUE, value))


def any_value(value: Any) -> bytes:
    """An `AnyValue` of the kind that the value's type has.

    Raises:
        ContractError: OTLP cannot carry it: no UTF-8, an integer beyond 64 bits, a type of another kind.
    """
    if isinstance(value, str):
        return delimited(_STRING_VALUE, _utf8(value))
    if isinstance(value, bool):
        return _BOOL_VALUE + _ONE_BYTE[value]
    if isinstance(value, int):
        if not -_HIGHEST_INT64 - 1 <= value <= _HIGHEST_INT64:
            raise ContractError(f"{value} has more than 64 bits and cannot be sent")
        return integer_value(varint(value))
    if isinstance(value, float):
        return _DOUBLE_VALUE + _double(value)
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray | memoryview):
        return array_value(b"".join([array_item(any_value(item)) for item in value]))
    raise ContractError(f"a {type(value).__name__} cannot be sent as an attribute")


def integer_value(number: bytes) -> bytes:
    """An `AnyValue` of an integer, given as a varint."""
    return _INT_VALUE + number


def array_value(items: bytes) -> bytes:
    """An `AnyValue` of an array of what `array_item` gave."""
    return delimited(_ARRAY_VALUE, items)


def array_item(value: bytes) -> bytes:
    """One encoded `AnyValue` of an array."""
    return delimited(_ARRAY_ITEM, value)


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise ContractError(f"{text!r} is no valid UTF-8 and cannot be sent") from error
