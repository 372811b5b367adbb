"""Attributes of a request parsed by `wire.request_class`, as plain Python values and as ClickHouse reads them."""

from collections.abc import Iterable
from typing import Any

from engine_hooks.contract.span import not_recorded


def attributes_of(items: Iterable[Any]) -> dict[str, Any]:
    """By name, those that say something; of an attribute given twice the first counts, whatever it is."""
    read: dict[str, Any] = {}
    for item in items:
        key = text_of(item.key)
        if key not in read:
            read[key] = value_of(item.value)
    return {key: value for key, value in read.items() if not not_recorded(value)}


def value_of(value: Any) -> Any:
    """The value of an `AnyValue`; `None` for a map and for bytes, which are of no type that the contract has."""
    kind = value.WhichOneof("value")
    if kind == "string_value":
        return text_of(value.string_value)
    if kind == "array_value":
        return [value_of(item) for item in value.array_value.values]
    return getattr(value, kind) if kind in ("bool_value", "int_value", "double_value") else None


def text_of(raw: bytes) -> str:
    """Text as the contract's validation takes it, what is no UTF-8 by surrogates."""
    return raw.decode(errors="surrogateescape")
