"""Both pages in every state, on the real engine, without a browser."""

from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import streamlit as st
from clickhouse_connect.driver.client import Client
from streamlit.testing.v1 import AppTest

from dashboards.commands import APP
from dashboards.links import CELL_PAGE, cell_address, cell_parameters
from dashboards.reading import answers
from dashboards.reading.shared import LastGood
from dashboards.reading.store import URL_VARIABLE
from queries.errors import UnreachableError
from tests.browser.labelled_cells import STUCK_CELL, STUCK_INSTANCE
from tests.fixtures.databases import database, read_only_url
from tests.fixtures.pages import page_opened, pressed

TIMEOUT_S = 30
NOWHERE = "http://127.0.0.1:9/tachograph"


def opened(url: str, monkeypatch: pytest.MonkeyPatch, **parameters: str) -> AppTest:
    """The Fleet page of a store."""
    monkeypatch.setenv(URL_VARIABLE, url)
    app = AppTest.from_file(str(APP), default_timeout=TIMEOUT_S)
    app.query_params.update(parameters)
    return checked(app.run())


def cell_opened(url: str, monkeypatch: pytest.MonkeyPatch, instance: str, cell: str) -> AppTest:
    """The Cell page of a store."""
    app = opened(url, monkeypatch)
    app.query_params.clear()
    app.query_params.update(cell_parameters(instance, cell))
    return checked(app.switch_page(CELL_PAGE).run())


def checked(app: AppTest) -> AppTest:
    """The app, which raised nothing."""
    assert not app.exception, [error.value for error in app.exception]
    return app


def said(app: AppTest) -> str:
    """All text of the page."""
    kinds = (app.title, app.markdown, app.caption, app.info, app.warning, app.error, app.success)
    return "\n".join(element.value for kind in kinds for element in kind)


def away(name: str, url: str, *_: Any, **__: Any) -> pd.DataFrame:
    """A ClickHouse that does not answer."""
    raise UnreachableError(f"no ClickHouse answers at {url}")


class TestFleet:
    def test_names_the_stuck_and_the_worst(self, labelled_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        app = opened(labelled_url, monkeypatch, range="all")
        text = said(app)
        assert "5 engines in all stored time, 2 stuck in plain decode" in text
        assert f'href="{escape(cell_address(STUCK_INSTANCE, STUCK_CELL))}"' in text
        assert "inflated estimates" in text
        assert not app.warning
        assert not app.error

    def test_draws_every_cell(self, labelled_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        app = opened(labelled_url, monkeypatch, range="all")
        assert len(app.get("vega_lite_chart")) == 1

    def test_filters_live_in_the_url(self, labelled_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        app = opened(labelled_url, monkeypatch, range="all", host="gpu-node-024")
        assert app.selectbox(key="host").value == "gpu-node-024"
        assert "1 engine in all stored time, 1 stuck" in said(app)
        checked(app.selectbox(key="host").set_value("gpu-node-018").run())
        assert "none stuck in plain decode" in said(app)

    def test_a_filter_of_the_url_that_fits_nothing_is_kept(
        self, labelled_url: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        app = opened(labelled_url, monkeypatch, range="all", host="elsewhere")
        assert "No graph executions in all stored time that match these filters" in said(app)
        assert app.selectbox(key="host").value == "elsewhere"

    def test_old_data_is_outside_the_default_range(self, labelled_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        app = opened(labelled_url, monkeypatch)
        assert "No graph executions in the last 30 minutes" in said(app)
        pressed(app, "Show all stored time")
        assert "5 engines in all stored time" in said(app)

    def test_an_empty_store_says_how_to_fill_it(
        self, store: Client, data_dir: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with database(store) as name, read_only_url(name, data_dir) as url:
            app = opened(url, monkeypatch, range="all")
        assert "Nothing has been stored yet" in said(app)

    def test_clickhouse_was_never_there(self, monkeypatch: pytest.MonkeyPatch) -> None:
        app = opened(NOWHERE, monkeypatch)
        assert len(app.error) == 1
        assert "no ClickHouse answers" in app.error[0].value
        assert "tries again by itself" in app.error[0].value

    def test_clickhouse_went_away(self, labelled_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        app = opened(labelled_url, monkeypatch, range="all")
        assert " · live" in said(app)
        monkeypatch.setattr(answers, "run", away)
        st.cache_data.clear()
        checked(app.run())
        assert "no ClickHouse answers" in app.warning[0].value
        assert "last good data" in app.warning[0].value
        assert "5 engines in all stored time" in said(app)
        assert " · live" not in said(app)

    def test_a_password_is_not_shown(self, monkeypatch: pytest.MonkeyPatch) -> None:
        app = opened("http://reader:secret@127.0.0.1:9/tachograph", monkeypatch)
        assert "secret" not in said(app)


class TestCell:
    def test_tells_what_happened(self, labelled_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        app = cell_opened(labelled_url, monkeypatch, STUCK_INSTANCE, STUCK_CELL)
        assert "**Stuck in plain decode:** 92 %" in app.warning[0].value
        assert "P128 was charged up to 38.7 ms for the 29.2 ms that it costs" in app.warning[0].value
        text = said(app)
        assert "gpu-node-024" in text.replace("\\", "")
        assert "2,267 tokens/s" in text
        assert len(app.get("vega_lite_chart")) == 2

    @pytest.mark.parametrize(
        ("cell", "sentence"),
        [
            ("bench-r001", "and rightly"),
            ("bench-r008", "Fine: 0 %"),
            ("bench-r049", "**Inflated estimates**, though not stuck"),
            ("1793491260", "no speculative graph to choose from"),
        ],
    )
    def test_each_verdict(self, labelled_url: str, monkeypatch: pytest.MonkeyPatch, cell: str, sentence: str) -> None:
        instance = answers.run("cells", labelled_url, "pandas", cell=cell).service_instance_id[0]
        assert sentence in said(cell_opened(labelled_url, monkeypatch, instance, cell))

    def test_tells_the_story_with_its_confidence(self, labelled_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        text = said(cell_opened(labelled_url, monkeypatch, STUCK_INSTANCE, STUCK_CELL)).replace("\\", "")
        assert "An inflated estimate: 6.0 % lost (4,338 tokens); confidence 1.00" in text
        assert "Execution 784 of P128 held up the pipeline for 81.69 ms with 29.07 ms on the GPU" in text
        assert "Plain decode began to win with execution 786" in text

    def test_an_execution_of_the_link_is_shown_whole(self, labelled_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        app = page_opened(
            CELL_PAGE, labelled_url, monkeypatch, **cell_parameters(STUCK_INSTANCE, STUCK_CELL), execution="784"
        )
        text = said(app).replace("\\", "")
        assert "| graph_wall_time_ns | 81,694,857 ns |" in text
        assert "| scheduler_candidate_graphs | decode, P64, P128 |" in text
        assert "Not recorded: graph_completion_feedback_reason." in text
        checked(app.number_input(key="execution").set_value(999_999).run())
        assert "No execution 999,999 in this cell" in said(app)

    def test_a_cell_that_is_not_stored(self, labelled_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        app = cell_opened(labelled_url, monkeypatch, STUCK_INSTANCE, "gone")
        assert "No execution of this cell is stored" in said(app)
        assert app.get("page_link"), "a way on"

    def test_without_a_cell_it_offers_some(self, labelled_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        app = opened(labelled_url, monkeypatch)
        checked(app.switch_page(CELL_PAGE).run())
        assert "Open a cell from the Fleet page" in said(app)

    def test_clickhouse_went_away(self, labelled_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        app = cell_opened(labelled_url, monkeypatch, STUCK_INSTANCE, STUCK_CELL)
        monkeypatch.setattr(answers, "run", away)
        st.cache_data.clear()
        checked(app.run())
        texts = [warning.value for warning in app.warning]
        assert any("last good data" in text for text in texts)
        assert any("Stuck in plain decode" in text for text in texts)

    def test_clickhouse_was_never_there(self, monkeypatch: pytest.MonkeyPatch) -> None:
        app = cell_opened(NOWHERE, monkeypatch, STUCK_INSTANCE, STUCK_CELL)
        assert "no ClickHouse answers" in app.error[0].value


def test_answers_share_one_query(labelled_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    real = answers.run

    def counting(name: str, *arguments: Any, **values: Any) -> pd.DataFrame:
        asked.append(name)
        return real(name, *arguments, **values)

    monkeypatch.setenv(URL_VARIABLE, labelled_url)
    monkeypatch.setattr(answers, "run", counting)
    first = answers.answer("cells", host="gpu-node-024")
    again = answers.answer("cells", host="gpu-node-024")
    assert asked == ["cells"]
    assert first.at == again.at
    assert len(first.rows) == 1
    assert first.rows.started_at.dt.tz is UTC


def test_the_last_good_answers_are_bounded() -> None:
    kept = LastGood(answers.Answer(), entries_max=48)
    for number in range(53):
        kept.keep((number,), answers.Answer(at=datetime.now(UTC)))
    assert not kept.recall((0,)).known
    assert kept.recall((52,)).known
