"""The page Graphs in every state, its words and its charts."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pandas as pd
import pytest
import streamlit as st
from clickhouse_connect.driver.client import Client

from dashboards.charts import series_colours
from dashboards.links import GRAPHS_PAGE
from dashboards.questions.measures import MEASURES, steps_of
from dashboards.reading import answers, outcomes
from dashboards.words.changes import comparable, drifting, nothing_sentence, too_little_sentence
from queries.errors import CallError
from tests.browser.labelled_cells import labelled_store
from tests.browser.two_arms import two_arms_store
from tests.fixtures.asking import START
from tests.fixtures.databases import database, read_only_url
from tests.fixtures.pages import NOWHERE, away, checked, page_opened, pressed, said
from tests.fixtures.query_rows import ENGINE, believing, insert, round_of


@pytest.fixture(scope="module")
def arms_url(store: Client, data_dir: Path) -> Iterator[str]:
    with two_arms_store(store, data_dir) as url:
        yield url


class TestPage:
    def test_the_change_is_told_and_the_drift(self, arms_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        app = page_opened(GRAPHS_PAGE, arms_url, monkeypatch, range="all")
        assert "The GPU time of P128 on gpu-node-002 rose by 8." in said(app)
        assert "1 change of level in all stored time" in said(app)
        assert "| P128 | gpu-node-002 | main |" in said(app)
        assert len(app.get("vega_lite_chart")) == 4

    def test_filters_and_measure_live_in_the_url(self, arms_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        app = page_opened(
            GRAPHS_PAGE, arms_url, monkeypatch, range="all", measure="handoff", host="gpu-node-001", graph="P128"
        )
        assert app.selectbox(key="host").value == "gpu-node-001"
        assert "No change of level in the handoff of any graph" in said(app)
        assert [subheader.value for subheader in app.subheader] == ["P128", "Drift of GPU time"]
        assert len(app.get("vega_lite_chart")) == 2

    def test_estimates_over_time(self, arms_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        app = page_opened(GRAPHS_PAGE, arms_url, monkeypatch, range="all", measure="estimate", host="gpu-node-002")
        assert "mean estimate of each step" in said(app)
        assert len(app.get("vega_lite_chart")) == 4

    def test_a_measure_that_there_is_not(self, arms_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        app = page_opened(GRAPHS_PAGE, arms_url, monkeypatch, range="all", measure="gpu_time", host="gpu-node-002")
        assert app.selectbox(key="measure").value == "GPU time"
        assert not app.exception

    def test_old_data_is_one_click_away(self, arms_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        app = page_opened(GRAPHS_PAGE, arms_url, monkeypatch, range="10 min")
        assert "No graph executions in the last 10 minutes" in said(app)
        pressed(app, "Show all stored time")
        assert "rose by 8." in said(app)

    @pytest.mark.parametrize(
        "asked",
        [
            {"graph": "nope"},
            {"host": "nope"},
            {"package": "nope"},
            {"host": "gpu-node-002", "graph": "nope"},
            {"graph": "nope", "measure": "estimate"},
        ],
    )
    def test_filters_that_match_nothing_are_no_good_news(
        self, arms_url: str, monkeypatch: pytest.MonkeyPatch, asked: dict[str, str]
    ) -> None:
        app = page_opened(GRAPHS_PAGE, arms_url, monkeypatch, range="all", **asked)
        assert not app.success
        named = {name: value for name, value in asked.items() if name != "measure"}
        which = ", ".join(f"{name} {value}" for name, value in named.items())
        assert f"No graph executions in all stored time match {which}." in said(app)
        assert not app.get("vega_lite_chart")

    def test_too_little_data_is_no_good_news(
        self, store: Client, data_dir: Path, cases: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with labelled_store(store, data_dir, cases, ("r014",)) as url:
            app = page_opened(GRAPHS_PAGE, url, monkeypatch, range="all")
        assert not app.success
        assert re.search(r"Only \d+ .* of data, \d steps? of 30 s or more: too little to tell a change", said(app))
        assert "It takes 10 steps of one graph on one host" in said(app)
        assert app.get("vega_lite_chart")

    def test_changes_that_could_not_be_looked_for_are_no_good_news(
        self, arms_url: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(*_: object) -> None:
            raise CallError("there are too many steps")

        monkeypatch.setattr(outcomes, "stored_series", refuse)
        app = page_opened(GRAPHS_PAGE, arms_url, monkeypatch, range="all")
        assert not app.success
        assert "Changes of level were not looked for: there are too many steps." in said(app)

    @pytest.mark.parametrize("measure", ["GPU time", "estimate"])
    def test_a_clock_that_is_years_ahead_is_named_and_stretches_nothing(
        self, store: Client, data_dir: Path, monkeypatch: pytest.MonkeyPatch, measure: str
    ) -> None:
        now_ms = (datetime.now(UTC) - START) / timedelta(milliseconds=1)
        decided = believing({"P128": (28, 9)})
        rounds = [
            round_of(n, now_ms - 3_600_000 + 30_000 * n, "P128", 28 + 2 * (n >= 60), **decided) for n in range(100)
        ]
        ahead = round_of(0, now_ms + timedelta(days=36_500) / timedelta(milliseconds=1), "P128", 28, **decided)
        with database(store) as name, read_only_url(name, data_dir) as url:
            insert(store, rounds)
            insert(store, [ahead], ENGINE._replace(service_instance_id="engine-ahead", host_name="node-ahead"))
            app = page_opened(GRAPHS_PAGE, url, monkeypatch, range="7 d", measure=measure)
        assert "node-ahead: clock 36,500 d ahead" in said(app)
        assert ("The GPU time of P128 on node-1 rose by 7." in said(app)) == (measure == "GPU time")
        assert app.get("vega_lite_chart")
        assert "node-ahead" not in str(app.get("vega_lite_chart")[0].proto)

    def test_an_empty_store(self, store: Client, data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        with database(store) as name, read_only_url(name, data_dir) as url:
            app = page_opened(GRAPHS_PAGE, url, monkeypatch, range="all")
        assert "No graph executions in all stored time" in said(app)

    def test_clickhouse_was_never_there(self, monkeypatch: pytest.MonkeyPatch) -> None:
        app = page_opened(GRAPHS_PAGE, NOWHERE, monkeypatch)
        assert "no ClickHouse answers" in app.error[0].value

    def test_clickhouse_went_away(self, arms_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        app = page_opened(GRAPHS_PAGE, arms_url, monkeypatch, range="all")
        monkeypatch.setattr(answers, "run", away)
        st.cache_data.clear()
        checked(app.run())
        assert any("last good data" in warning.value for warning in app.warning)
        assert len(app.get("vega_lite_chart")) == 4


class TestWords:
    def test_executions_without_the_measure(self) -> None:
        told = nothing_sentence({"host": "a", "graph": ""}, "handoff", "in the last 7 days", has_executions=True)
        assert told == "No handoff of host a is known in the last 7 days, though executions are stored."

    def test_nothing_was_looked_through(self) -> None:
        assert too_little_sentence((), "handoff") == "No handoff is stored to tell a change of level by."


class TestSteps:
    def test_a_handoff_below_zero_is_zero_and_an_empty_one_is_left_out(self) -> None:
        rows = pd.DataFrame(
            {
                "service_instance_id": ["one", "one"],
                "step_started_at": pd.to_datetime(["2026-11-01", "2026-11-02"], utc=True),
                "graph_name": ["P128", "P128"],
                "handoff_median_ns": [-3.0, None],
                "executions": [5, 6],
            }
        )
        engines = pd.DataFrame({"service_instance_id": ["one"], "host_name": ["node-1"], "engine_package": [""]})
        steps = steps_of(rows, engines, MEASURES["handoff"])
        assert list(steps.value_ms) == [0.0]
        assert list(steps.series) == ["node-1"]

    def test_the_busiest_series_have_colours_and_the_rest_share_one(self) -> None:
        rows = pd.DataFrame({"series": [f"host-{n}" for n in range(9)], "executions": range(9)})
        named = series_colours.named_series(rows)
        assert named == [f"host-{n}" for n in range(3, 9)]
        shown = series_colours.coloured(rows.series, named)
        names = series_colours.domain(shown, named)
        assert names[-1] == series_colours.OTHERS
        assert len(series_colours.colour_scale(names).range) == len(names)
        assert len(series_colours.shape_scale(names).range) == len(names)


@pytest.mark.parametrize(
    ("drift_percent", "spreads", "is_enough", "is_told"),
    [(5.0, 4.0, True, True), (5.0, 1.0, True, False), (0.5, 9.0, True, False), (5.0, None, False, False)],
)
def test_drift_is_beyond_what_cells_differ_by(
    drift_percent: float, spreads: float | None, is_enough: bool, is_told: bool
) -> None:
    rows = pd.DataFrame({"drift_percent": [drift_percent], "drift_in_spreads": pd.array([spreads], "Float64")})
    assert len(comparable(rows)) == is_enough
    assert len(drifting(comparable(rows))) == is_told
