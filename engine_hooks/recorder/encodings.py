"""The attributes of a span as OTLP's bytes, kept by value while values recur."""

from collections.abc import Callable
from operator import index
from typing import Any, Final

from engine_hooks.contract import names
from engine_hooks.contract.attributes import Attribute, AttributeType
from engine_hooks.contract.span import not_recorded
from engine_hooks.recorder.wire import any_value, array_item, array_value, integer_value, key_field, key_value, varint

_KEPT_MAX: Final = 512
"""Encoded values kept for each attribute, about 100 bytes each."""
_HIGHEST_INT64: Final = (1 << 63) - 1
_SPAN_ATTRIBUTE: Final = b"\x4a"
"""`attributes` of opentelemetry-proto's `Span`."""
_NEVER_TWICE: Final = {
    names.GRAPH_SEQUENCE,
    names.GRAPH_GPU_TIME_NS,
    names.GRAPH_WALL_TIME_NS,
    names.GRAPH_GPU_START_OFFSET_NS,
}
"""Hardly a value of these comes again: keeping them would only cost."""

Encode = Callable[[Any], bytes]


class Encodings(dict[Any, bytes]):
    """What values are encoded as, worked out when first asked for and kept while there is room.

    Values that Python holds equal share one entry, so `encode` must give equal values equal bytes; -0.0
    and 0.0, which differ, are never kept.
    """

    def __init__(self, encode: Encode, kept_max: int = _KEPT_MAX) -> None:
        super().__init__()
        self._encode = encode
        self._kept_max = kept_max

    def __missing__(self, value: Any) -> bytes:
        encoded = self._encode(value)
        if self._kept_max and (value or type(value) is not float):
            if len(self) >= self._kept_max:
                self.clear()
            self[value] = encoded
        return encoded


def encodings_of(attribute: Attribute) -> Encodings:
    """One attribute of a span, by value; nothing for a value that means "not recorded"."""
    encode = _ENCODERS[attribute.type](attribute.name)
    # Arrays with -0.0 and 0.0 in them are equal too: of numbers only the items are kept.
    never_kept = attribute.name in _NEVER_TWICE or attribute.type is AttributeType.NUMBERS
    return Encodings(encode, 0 if never_kept else _KEPT_MAX)


def _texts(name: str) -> Encode:
    return _scalars(name, lambda value: value)


def _numbers(name: str) -> Encode:
    return _scalars(name, _number)


def _integers(name: str) -> Encode:
    general = _scalars(name, _integer)
    key = key_field(name)
    before = [key_value(_SPAN_ATTRIBUTE, key, integer_value(bytes(size)))[: -size or None] for size in range(11)]

    def encode(value: Any) -> bytes:
        if type(value) is int and 0 <= value <= _HIGHEST_INT64:
            number = varint(value)
            return before[len(number)] + number
        return general(value)

    return encode


def _flags(name: str) -> Encode:
    general = _scalars(name, lambda value: True if value == 1 else value)
    return lambda value: general(value) if value else b""


def _scalars(name: str, convert: Callable[[Any], Any]) -> Encode:
    key = key_field(name)

    def encode(value: Any) -> bytes:
        return b"" if not_recorded(value) else key_value(_SPAN_ATTRIBUTE, key, any_value(convert(value)))

    return encode


def _arrays(convert: Callable[[Any], Any]) -> Callable[[str], Encode]:
    def encoder(name: str) -> Encode:
        # A lone value in place of an array goes as what it is: the collector says what is wrong with it.
        lone = _scalars(name, lambda value: value)
        key = key_field(name)
        item = Encodings(lambda value: array_item(any_value(convert(value)))).__getitem__

        def encode(values: Any) -> bytes:
            if values and type(values) is tuple:
                return key_value(_SPAN_ATTRIBUTE, key, array_value(b"".join(map(item, values))))
            return lone(values)

        return encode

    return encoder


# Equal numbers alike, so that they can share an entry. To the contract an integral double is an integer.


def _integer(value: Any) -> Any:
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    return index(value)


def _number(value: Any) -> Any:
    return float(value) if hasattr(value, "__float__") else value


_ENCODERS: Final[dict[AttributeType, Callable[[str], Encode]]] = {
    AttributeType.STRING: _texts,
    AttributeType.INTEGER: _integers,
    AttributeType.NUMBER: _numbers,
    AttributeType.BOOLEAN: _flags,
    AttributeType.STRINGS: _arrays(lambda value: value),
    AttributeType.INTEGERS: _arrays(_integer),
    AttributeType.NUMBERS: _arrays(_number),
}
