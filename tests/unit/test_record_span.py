"""A cell is one stretch of an engine: what is no such thing is refused before anything works on it by the second."""

import pytest

from queries.errors import CallError
from queries.record import CELL_SPAN_MAX_S, check_span
from tests.fixtures.query_rows import round_of


def test_a_cell_id_that_was_used_again_a_year_later_is_one_line() -> None:
    year_ms = 370 * 86400 * 1000
    with pytest.raises(CallError, match=r"^cell bench-7 spans 8,880\.0 h, .*used twice, or a clock jumped.*$"):
        check_span("bench-7", [round_of(0, 0, "decode", 14), round_of(1, year_ms, "decode", 14)])


def test_the_longest_cell_is_not() -> None:
    check_span("bench-7", [round_of(0, 0, "decode", 14), round_of(1, CELL_SPAN_MAX_S * 1000, "decode", 14)])
