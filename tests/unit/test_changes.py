"""Change points: series whose changes are known, and what is told of them."""

import io
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from queries.changes.detection import change_points
from queries.changes.found import changes_in, sparkline
from queries.changes.history import LABELS, Metric, labels_for, series_of
from queries.changes.shown import clocks_line, moment, percent, rendered, values_text
from queries.errors import CallError
from tests.fixtures.known_changes import KINDS, known_series, matches

START = datetime(2026, 11, 1, tzinfo=UTC)
SERIES = 216


def test_known_changes_are_found_and_no_others() -> None:
    # `make bench-changes` does more of them and prints the figures by kind.
    found = hits = known = 0
    for series in known_series(SERIES, seed=7):
        points = change_points(series.values)
        found += len(points)
        hits += matches([point.start for point in points], series.changes)
        known += len(series.changes)
    assert hits / known >= 0.98
    assert hits / found >= 0.98


@pytest.mark.parametrize("kind", ["steady", "outliers", "drift", "stuck"])
def test_what_is_no_change(kind: str) -> None:
    assert kind in KINDS
    wrong = [series for series in known_series(90, seed=8) if series.kind == kind and change_points(series.values)]
    assert len(wrong) <= 1


def test_one_bad_cell_is_no_change_and_ten_are_two() -> None:
    noise = np.random.default_rng(0).normal(28, 0.2, 200)
    for length, changes in ((1, []), (2, []), (20, [100, 120])):
        values = noise.copy()
        values[100 : 100 + length] *= 1.3
        assert [point.start for point in change_points(values)] == changes


def test_a_change_with_its_figures() -> None:
    values = np.random.default_rng(1).normal(28, 0.2, 120)
    values[50:] *= 1.05
    (point,) = change_points(values)
    assert point.start == 50
    assert (point.before, point.after) == (pytest.approx(28, abs=0.1), pytest.approx(29.4, abs=0.1))
    low, high = point.shift_interval_percent
    assert low < 5 < high < 6
    assert point.shift_percent == pytest.approx(5, abs=0.3)
    assert point.p_value < 1e-10
    assert change_points(values, shift_min_percent=10) == []


def test_a_collapse_to_nothing_is_a_change() -> None:
    (point,) = change_points([0.6, 0.61, 0.59, 0.6, 0.62] * 6 + [0.0] * 30)
    assert (point.start, round(point.shift_percent)) == (30, -99)


@pytest.mark.parametrize("values", [[], [1.0], [0.0] * 40, [5.0] * 40, [1.0, 2.0] * 4])
def test_nothing_to_find(values: list[float]) -> None:
    assert change_points(values) == []


def rows(**changed: Any) -> list[dict[str, Any]]:
    """Rows of `graph_history`: P128 on one host, 5 % slower from step 30 on, where these labels change too."""
    noise = np.random.default_rng(2).normal(0, 0.1e6, 60)
    plain: dict[str, Any] = dict.fromkeys(LABELS.values(), "same") | {"host_name": "node-1", "graph_name": "P128"}
    return [
        plain
        | (changed if step >= 30 else {})
        | {
            "step_started_at": START + timedelta(seconds=30 * step),
            "gpu_time_median_ns": int(28e6 * (1.05 if step >= 30 else 1) + noise[step]),
            "handoff_median_ns": None,
        }
        for step in range(60)
    ]


def test_what_else_changed_is_told() -> None:
    series = series_of(rows(engine_package="main-9a44c0"), Metric.GPU_TIME, ("host", "graph"))
    (change,) = changes_in(series, Metric.GPU_TIME, 1.0)
    assert (change.labels, change.is_worse) == (("node-1", "P128"), True)
    assert change.at == START + timedelta(seconds=900)
    assert change.after == START + timedelta(seconds=870)
    assert change.differences == (("package", "same", "main-9a44c0"),)
    assert series_of(rows(), Metric.HANDOFF, ("host", "graph")) == []


def test_what_changed_well_before_or_after_is_not_told() -> None:
    packages = ["early"] * 25 + ["then"] * 10 + ["late"] * 25
    stored = [row | {"engine_package": package} for row, package in zip(rows(), packages, strict=True)]
    series = series_of(stored, Metric.GPU_TIME, ("host", "graph"))
    (change,) = changes_in(series, Metric.GPU_TIME, 1.0)
    assert (change.point.start, change.differences) == (30, ())


def test_of_many_clocks_that_are_ahead_the_furthest_are_named_and_the_rest_counted() -> None:
    ahead_s = {f"node-{number}": 10.0 * number for number in range(1, 6)}
    rest = "; what that puts after the newest arrival is left out"
    named = "node-5: clock 50 s ahead, node-4: clock 40 s ahead, node-3: clock 30 s ahead"
    assert clocks_line(ahead_s) == f"{named} and 2 hosts more{rest}"
    del ahead_s["node-1"]
    assert clocks_line(ahead_s) == f"{named} and 1 host more{rest}"
    del ahead_s["node-2"]
    assert clocks_line(ahead_s) == f"{named}{rest}"
    assert clocks_line({}) == ""


@pytest.mark.parametrize("width", [80, 120, 160, 200])
def test_no_figure_and_no_name_is_cut_however_narrow_the_terminal_is(width: int) -> None:
    values = np.random.default_rng(1).normal(28e6, 0.2e6, 120) * np.where(np.arange(120) < 50, 1, 1.05)
    names = {"host_name": "gpu-node-024", "graph_name": "prefill-2048"}
    rows = [
        dict.fromkeys(LABELS.values(), "")
        | names
        | {"step_started_at": START + timedelta(seconds=30 * n), "gpu_time_median_ns": value}
        | {"engine_package": "main-9a44b2" if n < 50 else "main-9a44c0"}
        for n, value in enumerate(values)
    ]
    labels = ("host", "graph")
    found = changes_in(series_of(rows, Metric.GPU_TIME, labels), Metric.GPU_TIME, 1.0)
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(rendered(found, Metric.GPU_TIME, labels))
    text = console.export_text()
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    (change,) = found
    low, high = change.point.shift_interval_percent
    figures = (values_text(change, Metric.GPU_TIME), percent(change), f"{low:+.1f} to {high:+.1f}", moment(change))
    for whole in (*figures, *names.values(), "".join(sparkline(change.values, change.point.start)), "1 change of"):
        assert whole in text


def test_a_series_as_a_line() -> None:
    assert sparkline([1, 1, 1, 2, 2], 3) == ("▁▁▁", "██")
    before, after = sparkline([1.0] * 500 + [2.0] * 500, 500)
    assert len(before) == len(after) == 16
    assert set(before) == {"▁"}


def test_labels() -> None:
    assert labels_for(Metric.GPU_TIME, None) == ("host", "graph")
    assert labels_for(Metric.TOKENS_PER_S, None) == ("host",)
    assert labels_for(Metric.TOKENS_PER_S, "host, package") == ("host", "package")
    with pytest.raises(CallError, match="add graph"):
        labels_for(Metric.HANDOFF, "host")
    with pytest.raises(CallError, match="executions have host"):
        labels_for(Metric.ACCEPTANCE, "gpu")
