"""Whose fault is it that ClickHouse did not store a batch: of what is in it, or of the store?"""

from clickhouse_connect.driver.exceptions import ClickHouseError

_OF_THE_DATA = frozenset(
    {
        "ARGUMENT_OUT_OF_BOUND",
        "ATTEMPT_TO_READ_AFTER_EOF",
        "CANNOT_CONVERT_TYPE",
        "CANNOT_READ_ALL_DATA",
        "DECIMAL_OVERFLOW",
        "FUNCTION_THROW_IF_VALUE_IS_NON_ZERO",
        "INCORRECT_DATA",
        "PROTOBUF_BAD_CAST",
        "SIZES_OF_ARRAYS_DONT_MATCH",
        "TOO_DEEP_RECURSION",
        "TOO_LARGE_ARRAY_SIZE",
        "TOO_LARGE_STRING_SIZE",
        "UNKNOWN_PROTOBUF_FORMAT",
        "VALUE_IS_OUT_OF_RANGE_OF_DATA_TYPE",
        "VIOLATED_CONSTRAINT",
    }
)
"""Names of ClickHouse's errors that a batch brings about by what is in it, however healthy the store
(ClickHouse's ErrorCodes.cpp). Any other fault is the store's, and passes or is mended: a missing column, no memory."""
_CANNOT_PARSE = "CANNOT_PARSE_"


_OF_A_PART = ("MergeTree", "reading from part")
"""Part of what is said where it was not a request that could not be read to its end, but a part of the store."""


def of_the_data(error: BaseException) -> bool:
    """Whether the same batch fails again however often it is tried."""
    name = getattr(error, "name", None) or ""
    is_named = name in _OF_THE_DATA or name.startswith(_CANNOT_PARSE)
    return isinstance(error, ClickHouseError) and is_named and not any(said in str(error) for said in _OF_A_PART)


def from_the_engine(error: BaseException) -> bool:
    """Whether ClickHouse itself answered with this error, so that it is there and could look at the batch."""
    return isinstance(error, ClickHouseError) and getattr(error, "code", None) is not None
