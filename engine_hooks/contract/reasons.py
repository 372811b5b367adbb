"""Why a span is refused: the fixed reasons, once, in the order in which they are looked for.

They are metric labels, so none holds a measured value and the set is bounded (`REASONS`).
Where several apply, the first of `REASONS` is given.
"""

from typing import Final

from engine_hooks.contract.attributes import RESOURCE_ATTRIBUTES, SPAN_ATTRIBUTES, Attribute
from engine_hooks.contract.names import ENGINE_PREFIX

TRACE_ID_INVALID: Final = "trace id is not 16 bytes or all zero"
SPAN_ID_INVALID: Final = "span id is not 8 bytes or all zero"
START_MISSING: Final = "span start is zero"
START_BEYOND_INT64: Final = "span start is beyond signed 64 bit nanoseconds"
END_BEFORE_START: Final = "span end is before span start"
SPAN_TOO_LONG: Final = "span is longer than one hour"
END_BEYOND_INT64: Final = "span end is beyond signed 64 bit nanoseconds"
ENGINE_ATTRIBUTE_NOT_UTF8: Final = f"an attribute under {ENGINE_PREFIX} is not valid UTF-8"
CANDIDATES_DIFFER: Final = "candidate arrays differ in length"


def not_utf8(attribute: Attribute) -> str:
    return f"{attribute.name} is not valid UTF-8"


def wrong_type(attribute: Attribute) -> str:
    return f"{attribute.name} is not {attribute.type}"


def missing(attribute: Attribute) -> str:
    return f"{attribute.name} is missing"


def unknown(attribute: Attribute) -> str:
    return f"{attribute.name} is unknown"


def too_low(attribute: Attribute) -> str:
    """Below `lowest`: zero everywhere but in an offset, which may be an hour early."""
    return f"{attribute.name} is {'negative' if attribute.lowest == 0 else 'more than one hour early'}"


def too_high(attribute: Attribute) -> str:
    return f"{attribute.name} is above one hour"


def reasons_of(attribute: Attribute) -> tuple[str, ...]:
    """Every reason one attribute can give, in order."""
    texts = attribute.type in ("a string", "an array of strings")
    return tuple(
        reason(attribute)
        for reason, applies in (
            (wrong_type, True),
            (not_utf8, texts),
            (missing, attribute.required),
            (unknown, bool(attribute.values)),
            (too_low, attribute.lowest is not None),
            (too_high, attribute.highest is not None),
        )
        if applies
    )


REASONS: Final[tuple[str, ...]] = (
    TRACE_ID_INVALID,
    SPAN_ID_INVALID,
    START_MISSING,
    START_BEYOND_INT64,
    END_BEFORE_START,
    SPAN_TOO_LONG,
    END_BEYOND_INT64,
    *(reason for attribute in RESOURCE_ATTRIBUTES for reason in reasons_of(attribute)),
    ENGINE_ATTRIBUTE_NOT_UTF8,
    *(reason for attribute in SPAN_ATTRIBUTES for reason in reasons_of(attribute)),
    CANDIDATES_DIFFER,
)
