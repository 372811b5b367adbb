"""How a cell is asked for: its window, its bounds, and the time range that a page begins with."""

from datetime import UTC

import pandas as pd

from dashboards.questions.cells import bounds, is_running, window
from dashboards.questions.ranges import DEFAULT_RANGE, RANGES
from tests.fixtures.dashboard_rows import cells


class TestCells:
    def test_a_window_is_asked_for_with_its_bounds(self) -> None:
        assert window("1793491260") == {"from_": "2026-11-01T00:01:00+00:00", "to": "2026-11-01T00:01:30+00:00"}
        assert window("bench-r014") == window("42") == {}

    def test_a_cell_that_ended_is_bounded(self) -> None:
        assert not is_running(cells())
        assert bounds(cells()) == {"from_": "2026-11-01T00:00:00+00:00", "to": "2026-11-01T00:00:31+00:00"}

    def test_a_running_cell_has_no_end(self) -> None:
        rows = cells({"ended_at": pd.Timestamp.now(UTC)})
        assert is_running(rows)
        assert "to" not in bounds(rows)


def test_the_default_range_is_one_of_them() -> None:
    assert RANGES[DEFAULT_RANGE].since == "-30m"
