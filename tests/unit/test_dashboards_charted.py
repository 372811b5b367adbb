"""Charts made ready once."""

from collections.abc import Iterator

import altair as alt
import pandas as pd
import pytest
import streamlit as st

from dashboards.charts.cell_timeline import cell_timeline
from dashboards.charts.finished import finished
from dashboards.charts.fleet_grid import ROOMY, finished_grid, fleet_grid
from dashboards.parts.charted import kept
from tests.fixtures.dashboard_rows import candidates, cells, executions


@pytest.fixture(autouse=True)
def _nothing_kept() -> Iterator[None]:
    st.cache_resource.clear()
    yield
    st.cache_resource.clear()


def dots() -> alt.Chart:
    rows: alt.Chart = alt.Chart(pd.DataFrame({"x": [1], "y": [2]})).mark_point().encode(x="x:Q", y="y:Q")
    return rows


def test_a_finished_chart_says_what_the_chart_said() -> None:
    rows = executions()
    spec = finished(cell_timeline(rows, candidates(rows)))
    plain = cell_timeline(rows, candidates(rows)).to_dict()
    assert [panel.get("title") for panel in spec["vconcat"]] == [panel.get("title") for panel in plain["vconcat"]]
    named = {one["data"]["name"] for panel in spec["vconcat"] for one in panel["layer"] if "data" in one}
    assert named <= set(spec["datasets"])
    lanes = spec["datasets"][spec["vconcat"][1]["layer"][0]["data"]["name"]]
    assert list(lanes.sequence) == list(rows.graph_sequence)


def test_a_frame_that_several_panels_draw_is_sent_once() -> None:
    rows = executions()
    frames = list(finished(cell_timeline(rows, candidates(rows)))["datasets"].values())
    assert len({id(frame) for frame in frames}) == len(frames)


def test_altairs_own_size_does_not_keep_a_chart_from_filling_its_page() -> None:
    view = finished(dots()).get("config", {}).get("view", {})
    assert "continuousWidth" not in view


def test_a_chart_is_built_once_for_all() -> None:
    built = []

    def build() -> alt.Chart:
        built.append(1)
        return dots()

    assert kept(("dots", 1), build) is kept(("dots", 1), build)
    assert len(built) == 1
    kept(("dots", 2), build)
    assert len(built) == 2


def test_a_fleets_grid_is_the_same_however_it_is_made() -> None:
    rows, engines = cells({}, {"service_instance_id": "instance-2", "stuck": True}), ["instance-2", "instance-1"]
    ready = finished_grid(rows, engines, ROOMY, ())
    plain = finished(fleet_grid(rows, engines, ROOMY))
    assert [layer["mark"] for layer in ready["layer"]] == [layer["mark"] for layer in plain["layer"]]
    assert ready["layer"][0]["encoding"] == plain["layer"][0]["encoding"]
    assert list(ready["datasets"]["cells"].cell) == list(next(iter(plain["datasets"].values())).cell)
