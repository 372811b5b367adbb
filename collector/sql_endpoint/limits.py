"""How much one query, and all of them together, may take; and which settings a client may change."""

import re
from typing import NamedTuple

from collector.sql_endpoint.failures import QueryError


class QueryLimits(NamedTuple):
    """Bounds that hold for every query. None can be lifted by a client, only tightened."""

    execution_time_s: int = 70
    """Grafana asks for 65: its own limit of 60, and 5 more. A client that asks for more than this is refused."""
    memory_bytes: int = 1024**3
    """What the engine may use for one query."""
    result_bytes: int = 256 * 1024**2
    """The largest result in a format with a frame, which cannot be streamed: Arrow, Parquet, JSON. A quarter of it
    in a text format, because text is larger than what the engine counts."""
    result_rows: int = 1_000_000
    """The longest result in a text format that cannot be streamed."""
    streamed_bytes: int = 4 * 1024**3
    """The largest result in a format that is streamed."""
    spilled_bytes: int = 4 * 1024**3
    """What one query may put down in the engine's own temporary files."""
    queries_at_once: int = 6
    wait_s: float = 5.0
    """How long a query waits for its turn before it is refused with TOO_MANY_SIMULTANEOUS_QUERIES."""
    send_s: float = 30.0
    """How long a client may take to accept a piece of an answer before it is cut off."""
    request_bytes: int = 4 * 1024**2
    """The largest request body, after decompression."""
    body_s: float = 10.0
    """How long a request body may take to arrive."""

    def settings(self) -> dict[str, str]:
        """The engine's settings that enforce them."""
        return {
            "max_execution_time": str(self.execution_time_s),
            "max_memory_usage": str(self.memory_bytes),
            "max_temporary_data_on_disk_size_for_query": str(self.spilled_bytes),
        }

    def settings_of_whole_result(self) -> dict[str, str]:
        """The same for a result that is held whole before it is sent."""
        return {**self.settings(), "max_result_bytes": str(self.result_bytes)}

    def settings_of_whole_text(self) -> dict[str, str]:
        """The same where it is text."""
        bounds = {"max_result_bytes": str(self.result_bytes // 4), "max_result_rows": str(self.result_rows)}
        return {**self.settings(), **bounds}


# What real clients send. Each says how a result is computed or written down, within the limits.
_CHANGEABLE = re.compile(
    r"""
    (output_format | date_time | format_csv | format_tsv | format_custom | join | optimize | prefer | query_plan
        | max_rows | max_bytes | min_bytes | min_rows | partial_merge | low_cardinality | use_index | use_skip) _\w+
    | \w+_overflow_mode
    | (max_block_size | max_columns_to_read | max_query_size | max_ast_depth | max_ast_elements
        | max_parser_depth | preferred_block_size_bytes | limit | offset | extremes | session_timezone | distinct_overflow
        | log_comment | log_queries | allow_experimental_analyzer | enable_analyzer | final | group_by_use_nulls
        | aggregate_functions_null_for_empty | cast_keep_nullable | cast_string_to_dynamic_use_inference
        | convert_query_to_cnf | count_distinct_implementation | transform_null_in | data_type_default_nullable
        | allow_suspicious_types_in_group_by | allow_suspicious_types_in_order_by
        | compile_expressions | enable_optimize_predicate_expression | read_in_order_two_level_merge_threshold
        | cancel_http_readonly_queries_on_client_close | enable_http_compression | send_progress_in_http_headers
        | http_headers_progress_interval_ms | http_write_exception_in_output_format)
    """,
    re.VERBOSE,
)
# A setting of that kind that makes the engine open a file or a connection.
_REACHES_OUT = re.compile(r"schema|path|file|url|template|directory|disk")
# Time and threads, bytes: only ever less.
_TIGHTENED = {
    "max_execution_time": "execution_time_s",
    "max_memory_usage": "memory_bytes",
    "max_result_bytes": "result_bytes",
    "max_result_rows": "result_rows",
}
THREADS_MAX = 64


def check_setting(name: str, value: str, limits: QueryLimits) -> None:
    """Let a client change this setting, or not.

    Raises:
        QueryError: READONLY, or SETTING_CONSTRAINT_VIOLATION where only less would do.
    """
    if name == "readonly" and value in ("1", "2"):
        return
    bound = THREADS_MAX if name == "max_threads" else getattr(limits, _TIGHTENED.get(name, ""), None)
    if bound is not None:
        _check_at_most(name, value, bound)
    elif not _CHANGEABLE.fullmatch(name) or _REACHES_OUT.search(name):
        raise QueryError("READONLY", f"Cannot modify '{name}' setting in readonly mode")


def _check_at_most(name: str, value: str, bound: int) -> None:
    try:
        fits = 0 < float(value) <= bound
    except ValueError:
        fits = False
    if not fits:
        raise QueryError("SETTING_CONSTRAINT_VIOLATION", f"Setting {name} must be above 0 and at most {bound} here")
