"""People's marks on time axes."""

from datetime import UTC, datetime

import altair as alt
import pandas as pd

from dashboards.charts.cell_timeline import cell_timeline
from dashboards.charts.fleet_grid import fleet_grid, time_channel
from dashboards.charts.notes import note_layers, note_rows
from queries.annotations.marks import Mark
from tests.fixtures.dashboard_rows import BEGIN, candidates, cells, executions

MARKS = tuple(
    Mark(str(second), datetime(2026, 11, 1, 0, 0, second, tzinfo=UTC), f"noted at {second}", author="me")
    for second in (1, 2, 40)
)


def drawn_texts(chart: alt.VConcatChart | alt.LayerChart) -> list[str]:
    return [row["noted"] for rows in chart.to_dict()["datasets"].values() for row in rows if "noted" in row]


def test_only_marks_of_the_time_shown_are_drawn() -> None:
    begin_ms = datetime(2026, 11, 1, tzinfo=UTC).timestamp() * 1000
    rows = note_rows(MARKS, begin_ms + 1500, begin_ms + 30_000)
    assert rows.noted.tolist() == ["noted at 2"]
    assert rows.noted_utc.tolist() == ["2026-11-01 00:00:02.000 UTC"]
    assert rows.about.tolist() == ["every engine"]
    assert note_layers(note_rows((), 0, 1), time_channel) == []


def test_a_fleet_shows_what_was_noted() -> None:
    assert drawn_texts(fleet_grid(cells(), marks=MARKS)) == ["noted at 1", "noted at 2"]
    assert drawn_texts(fleet_grid(cells())) == []


def test_a_cell_shows_what_was_noted() -> None:
    rows = executions()
    assert drawn_texts(cell_timeline(rows, candidates(rows).iloc[:0], marks=MARKS)) == ["noted at 1", "noted at 2"]
    without = cell_timeline(rows, candidates(rows).iloc[:0])
    assert len(cell_timeline(rows, candidates(rows).iloc[:0], marks=MARKS).vconcat) == len(without.vconcat) + 1


def test_that_a_clock_is_ahead_is_read_where_a_mark_lies() -> None:
    """Above the mark's line, on the page's own ground."""
    began = BEGIN + pd.Timedelta(days=10)
    ahead = {"service_instance_id": "two", "started_at": began, "ended_at": began + pd.Timedelta(seconds=30)}
    layers = fleet_grid(cells({}, ahead), marks=MARKS).to_dict()["layer"]
    marks = [one for layer in layers for one in layer.get("layer", [layer])]
    texts = [one.get("encoding", {}).get("text", {}).get("field") for one in marks]
    lines = [at for at, one in enumerate(marks) if one["mark"]["type"] == "rule"]
    ground, words = (at for at, field in enumerate(texts) if field == "clock")
    assert max(lines) < ground < words
    assert marks[ground]["mark"]["stroke"] == {"expr": "background"}
