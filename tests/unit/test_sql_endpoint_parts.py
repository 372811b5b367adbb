"""The endpoint's parts by themselves: encodings, failures, limits, and what is found in a rewritten statement."""

import gzip
import zlib

import lz4.frame
import pytest
from backports import zstd
from hypothesis import given
from hypothesis import strategies as st

from collector.sql_endpoint.compression import accepted_encoding, compressor, decompressed
from collector.sql_endpoint.failures import QueryError, engine_failure
from collector.sql_endpoint.guard import _format, _functions, _settings, _tokens
from collector.sql_endpoint.limits import QueryLimits, check_setting

LIMITS = QueryLimits()
DECOMPRESS = {
    "gzip": gzip.decompress,
    "deflate": zlib.decompress,
    "lz4": lz4.frame.decompress,
    "zstd": zstd.decompress,
}


@pytest.mark.parametrize("encoding", DECOMPRESS)
@given(pieces=st.lists(st.binary(max_size=200), max_size=5))
def test_a_body_compressed_piece_by_piece_reads_back(encoding: str, pieces: list[bytes]) -> None:
    compress = compressor(encoding)
    body = b"".join(compress.compress(piece) for piece in pieces) + compress.flush()
    assert DECOMPRESS[encoding](body) == b"".join(pieces)
    assert decompressed(body, encoding, 10_000) == b"".join(pieces)


@pytest.mark.parametrize("encoding", DECOMPRESS)
def test_a_bomb_is_refused_before_it_is_unpacked(encoding: str) -> None:
    compress = compressor(encoding)
    bomb = compress.compress(bytes(10**7)) + compress.flush()
    with pytest.raises(QueryError) as refused:
        decompressed(bomb, encoding, 1000)
    assert refused.value.status == 413


@pytest.mark.parametrize("encoding", DECOMPRESS)
@pytest.mark.parametrize("broken", [b"SELECT 1", b""])
def test_a_body_that_is_not_compressed_as_it_says_is_refused(encoding: str, broken: bytes) -> None:
    with pytest.raises(QueryError) as refused:
        decompressed(broken, encoding, 1000)
    assert refused.value.name == "CANNOT_DECOMPRESS"


@pytest.mark.parametrize(
    ("header", "expected"),
    [("", None), ("br", None), ("br, gzip;q=0.5", "gzip"), ("lz4,zstd,br,gzip,deflate", "lz4"), ("identity", None)],
)
def test_the_first_encoding_that_can_be_served_is_taken(header: str, expected: str | None) -> None:
    assert accepted_encoding(header) == expected


@pytest.mark.parametrize(
    ("text", "name", "code", "message"),
    [
        ("Code: 60. DB::Exception: Unknown table x. (UNKNOWN_TABLE)", "UNKNOWN_TABLE", 60, "Unknown table x."),
        (
            "Streaming query failed: Code: 164. DB::Exception: Code: 164. DB::Exception: Cannot modify. (READONLY) "
            "(version 26.9.2.1). (READONLY)",
            "READONLY",
            164,
            "Cannot modify.",
        ),
        ("something else", "UNKNOWN_EXCEPTION", 1002, "something else"),
    ],
)
def test_an_error_of_the_engine_keeps_code_and_name(text: str, name: str, code: int, message: str) -> None:
    failure = engine_failure(RuntimeError(text))
    assert (failure.name, failure.code, str(failure)) == (name, code, message)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_block_size", "1000"),
        ("max_threads", "4"),
        ("readonly", "1"),
        ("max_execution_time", "1.5"),
        ("output_format_json_quote_64bit_integers", "0"),
        ("cancel_http_readonly_queries_on_client_close", "1"),
    ],
)
def test_settings_that_clients_send_may_be_changed(name: str, value: str) -> None:
    check_setting(name, value, LIMITS)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("readonly", "0"),
        ("max_execution_time", "0"),
        ("max_execution_time", "3600"),
        ("max_execution_time", "DEFAULT"),
        ("max_execution_time", "nan"),
        ("max_memory_usage", "0"),
        ("max_threads", "100000"),
        ("format_schema", "/etc/passwd"),
        ("output_format_schema", "/etc/x"),
        ("format_template_row", "/etc/passwd"),
        ("allow_introspection_functions", "1"),
        ("allow_ddl", "1"),
        ("no_such_setting", "1"),
    ],
)
def test_settings_that_would_widen_anything_may_not(name: str, value: str) -> None:
    with pytest.raises(QueryError) as refused:
        check_setting(name, value, LIMITS)
    assert refused.value.name in ("READONLY", "SETTING_CONSTRAINT_VIOLATION")


@pytest.mark.parametrize(
    ("text", "functions", "settings", "output_format"),
    [
        ("SELECT 'file(1)', `file(` FROM t", [], [], None),
        ("SELECT COLUMNS('a') APPLY file, f(x), `g h`(y) FORMAT CSV", ["COLUMNS", "file", "f", "g h"], [], "CSV"),
        ("SELECT 1 SETTINGS a = 1, b = 'x' FORMAT JSON", [], [("a", "1"), ("b", "x")], "JSON"),
        ("SELECT * FROM (SELECT 1 FORMAT TSV SETTINGS a = -1), b = 2", ["FROM"], [("a", "-1")], None),
        ("SELECT 1 SETTINGS a = {'x':[1, 2]}, readonly = 0", [], [("a", "{'x':[1,2]}"), ("readonly", "0")], None),
        ("SELECT 1 AS SETTINGS", [], [], None),
        ("SHOW SETTINGS LIKE 'x'", [], [], None),
    ],
)
def test_what_is_found_in_a_rewritten_statement(
    text: str, functions: list[str], settings: list[tuple[str, str]], output_format: str | None
) -> None:
    tokens = list(_tokens(text))
    assert list(_functions(tokens)) == functions
    assert list(_settings(tokens)) == settings
    assert _format(tokens) == output_format


def test_a_settings_clause_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(QueryError):
        list(_settings(list(_tokens("SELECT 1 SETTINGS a.b = 1, readonly = 0"))))
