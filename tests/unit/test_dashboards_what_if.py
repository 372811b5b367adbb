"""The page What if in every state, its words and its charts."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pandas as pd
import pytest
import streamlit as st
from clickhouse_connect.driver.client import Client

from dashboards.charts.finished import finished
from dashboards.charts.replayed_choices import RECORDED, charge_rows, choice_rows, replayed_choices
from dashboards.links import WHAT_IF_PAGE, cell_parameters
from dashboards.reading import outcomes
from dashboards.words.replays import replay_sentence, swap_table
from queries.annotations.marks import Mark
from queries.replay.replaying import Form, replayed
from queries.replay.result import Replay
from tests.browser.labelled_cells import STUCK_CELL, STUCK_INSTANCE
from tests.fixtures.databases import database, read_only_url
from tests.fixtures.pages import NOWHERE, away, checked, page_opened, said

STUCK = cell_parameters(STUCK_INSTANCE, STUCK_CELL)

CELLS = ("r014", "r043")


@pytest.fixture(scope="module")
def stuck(labelled_url: str) -> Replay:
    """The stuck cell under the corrected model."""
    return replayed(labelled_url, STUCK_INSTANCE, STUCK_CELL, "drained_share", form=Form.EXACT)


class TestPage:
    def test_the_decisions_that_would_have_been_others(
        self, labelled_url: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        app = page_opened(WHAT_IF_PAGE, labelled_url, monkeypatch, **STUCK)
        text = said(app)
        assert "drained_share would have made 1,948 of 2,026 decisions (96 %) otherwise" in text
        assert "At 2.386 s (sequence 786) decode was chosen, and P128 charged 38.7 ms." in text
        assert "| decode | P128 | 1,948 | 27.02 |" in text
        assert len(app.get("vega_lite_chart")) == 1
        assert "simulation" not in text.lower()

    def test_the_recorded_model_chooses_the_same(self, labelled_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        app = page_opened(WHAT_IF_PAGE, labelled_url, monkeypatch, model="exposed_mean", **STUCK)
        assert app.selectbox(key="model").value == "exposed_mean"
        assert "exposed_mean would have" in said(app)
        assert "It is the model that was in charge" in said(app)

    def test_the_simulation_is_asked_for_and_says_what_it_is(
        self, labelled_url: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(outcomes, "SEEDS", 2)
        app = page_opened(WHAT_IF_PAGE, labelled_url, monkeypatch, simulate="true", **STUCK)
        text = said(app)
        assert "By simulation drained_share would have emitted" in text
        assert "A simulation fitted to this cell, 2 runs of each kind" in text
        assert len(app.get("vega_lite_chart")) == 2

    def test_an_unknown_model_is_one_line(self, labelled_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        app = page_opened(WHAT_IF_PAGE, labelled_url, monkeypatch, model="oracle", **STUCK)
        assert "Nothing to replay: no cost model is called 'oracle'" in said(app)

    def test_a_cell_that_is_not_stored(self, labelled_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        app = page_opened(WHAT_IF_PAGE, labelled_url, monkeypatch, engine=STUCK_INSTANCE, cell="gone")
        assert "No execution of this cell is stored" in said(app)

    def test_without_a_cell_it_offers_the_stuck_ones(self, labelled_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        app = page_opened(WHAT_IF_PAGE, labelled_url, monkeypatch)
        assert "Open a cell from the Cell page, or one of these." in said(app)
        links = [link.proto.label for link in app.get("page_link")]
        assert len(links) == 1
        assert "92 % plain decode" in links[0]

    def test_an_empty_store(self, store: Client, data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        with database(store) as name, read_only_url(name, data_dir) as url:
            app = page_opened(WHAT_IF_PAGE, url, monkeypatch)
        assert "No executions are stored yet." in said(app)

    def test_clickhouse_was_never_there(self, monkeypatch: pytest.MonkeyPatch) -> None:
        app = page_opened(WHAT_IF_PAGE, NOWHERE, monkeypatch, **STUCK)
        assert "no ClickHouse answers" in app.error[0].value

    def test_clickhouse_went_away(self, labelled_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        app = page_opened(WHAT_IF_PAGE, labelled_url, monkeypatch, **STUCK)
        monkeypatch.setattr(outcomes, "replayed", away)
        st.cache_data.clear()
        checked(app.run())
        assert any("last good data" in warning.value for warning in app.warning)
        assert "1,948 of 2,026 decisions" in said(app)


class TestWordsAndCharts:
    def test_sentence_and_table(self, stuck: Replay) -> None:
        assert stuck.exact is not None
        assert "27.0 s of the cell" in replay_sentence(stuck, stuck.exact)
        assert swap_table(stuck.exact).count("\n") == 2

    def test_lanes_cover_the_cell_without_gaps(self, stuck: Replay) -> None:
        assert stuck.exact is not None
        rows = pd.DataFrame(choice_rows(stuck, stuck.exact))
        for chooser, lane in rows.groupby("chooser"):
            assert chooser in (RECORDED, "drained_share")
            assert (lane.to_ms.iloc[:-1].to_numpy() == lane.from_ms.iloc[1:].to_numpy()).all()
            assert lane.decisions.sum() == len(stuck.exact.decisions)
        assert rows[(rows.chooser == "drained_share")].iloc[-1].graph == "P128"

    def test_charges_are_drawn_where_they_change(self, stuck: Replay) -> None:
        assert stuck.exact is not None
        rows = pd.DataFrame(charge_rows(stuck.exact, stuck.cost_model))
        recorded = rows[(rows.by == RECORDED) & (rows.graph == "P128")]
        assert recorded.charge_ms.max() == pytest.approx(38.73, abs=0.01)
        assert len(rows) < len(stuck.exact.decisions) * 6
        titles = [str(panel["title"]) for panel in replayed_choices(stuck, stuck.exact, {}).to_dict()["vconcat"]]
        assert titles[1:] == ["Charged for P128, ms", "Charged for P64, ms", "Charged for decode, ms"]

    def test_what_was_noted_stands_on_the_time_axis(self, stuck: Replay) -> None:
        assert stuck.exact is not None
        within = datetime.fromtimestamp(stuck.began_at / 1e9 + 10, UTC)
        marks = [Mark("in", within, "backup began"), Mark("out", within + timedelta(hours=1), "later")]
        chart = finished(replayed_choices(stuck, stuck.exact, {}, marks))
        assert chart["vconcat"][1]["title"] == "What was noted"
        noted = [frame for frame in chart["datasets"].values() if "noted" in frame]
        assert [list(frame.noted) for frame in noted] == [["backup began"]]
