"""Every page where there is nothing to show, where ClickHouse refuses, and where it was never there."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import streamlit as st
from clickhouse_connect.driver.client import Client

from dashboards.links import (
    ALERTS_PAGE,
    CELL_PAGE,
    COMPARE_PAGE,
    FLEET_PAGE,
    GRAPHS_PAGE,
    HEALTH_PAGE,
    SQL_PAGE,
    WHAT_IF_PAGE,
)
from dashboards.reading import answers, console
from queries.errors import RefusedError
from queries.runner import run
from tests.browser.labelled_cells import STUCK_CELL, STUCK_INSTANCE
from tests.fixtures.databases import database, read_only_url
from tests.fixtures.pages import NOWHERE, away, checked, page_opened, said

NOTHING = {
    FLEET_PAGE: ({"range": "all"}, "Nothing has been stored yet"),
    CELL_PAGE: ({}, "No executions are stored yet"),
    GRAPHS_PAGE: ({"range": "all"}, "No graph executions in all stored time"),
    COMPARE_PAGE: ({}, "Nothing to compare"),
    WHAT_IF_PAGE: ({}, "No executions are stored yet"),
    ALERTS_PAGE: ({}, "No alert changed its state in the last 24 hours"),
    SQL_PAGE: ({"query": "cells"}, "The answer has no rows"),
    HEALTH_PAGE: ({}, "No engine fell silent"),
}
ASKING = {**NOTHING, CELL_PAGE: ({"engine": "e", "cell": "c"}, ""), WHAT_IF_PAGE: ({"engine": "e", "cell": "c"}, "")}
STUCK = {"engine": STUCK_INSTANCE, "cell": STUCK_CELL}
WITH_MARKS = {
    FLEET_PAGE: {"range": "all"},
    GRAPHS_PAGE: {"range": "all"},
    WHAT_IF_PAGE: STUCK,
    CELL_PAGE: {**STUCK, "execution": "784"},
}
"""Pages that ask several questions."""
REFUSAL = "ClickHouse refused: Code: 241 (MEMORY_LIMIT_EXCEEDED)"


@pytest.fixture(scope="module")
def empty_url(store: Client, data_dir: Path) -> Iterator[str]:
    with database(store) as name, read_only_url(name, data_dir) as url:
        yield url


CELLS = ("r014",)


@pytest.fixture(autouse=True)
def _own_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No evaluator of alerts and no collector of this machine's is looked at."""
    monkeypatch.setenv("TACHOGRAPH_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("TACHOGRAPH_COLLECTOR_URL", "http://127.0.0.1:9")
    st.cache_data.clear()
    yield
    st.cache_data.clear()


def refuse(*_: Any, **__: Any) -> pd.DataFrame:
    """A ClickHouse that has had enough."""
    raise RefusedError(REFUSAL)


@pytest.mark.parametrize("page", NOTHING, ids=lambda page: Path(page).stem)
def test_nothing_is_stored(page: str, empty_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, sentence = NOTHING[page]
    app = page_opened(page, empty_url, monkeypatch, **asked)
    assert sentence in said(app)
    assert not app.error


@pytest.mark.parametrize("page", ASKING, ids=lambda page: Path(page).stem)
def test_clickhouse_refuses(page: str, empty_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "run", refuse)
    monkeypatch.setattr(console, "run", refuse)
    monkeypatch.setattr("dashboards.reading.outcomes.compare_stored", refuse)
    text = said(page_opened(page, empty_url, monkeypatch, **ASKING[page][0]))
    assert "MEMORY_LIMIT_EXCEEDED" in text
    assert "Traceback" not in text


@pytest.mark.parametrize("page", ASKING, ids=lambda page: Path(page).stem)
def test_clickhouse_was_never_there(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = said(page_opened(page, NOWHERE, monkeypatch, **ASKING[page][0]))
    assert text.count("no ClickHouse answers") == 1
    assert "Traceback" not in text


@pytest.mark.parametrize("page", WITH_MARKS, ids=lambda page: Path(page).stem)
def test_clickhouse_goes_away_and_the_page_says_so_once(
    page: str, labelled_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = page_opened(page, labelled_url, monkeypatch, **WITH_MARKS[page])
    assert "no ClickHouse answers" not in said(app)
    monkeypatch.setattr(answers, "run", away)
    for outcome in ("told", "replayed", "stored_series"):
        monkeypatch.setattr(f"dashboards.reading.outcomes.{outcome}", away)
    st.cache_data.clear()
    text = said(checked(app.run()))
    assert text.count("no ClickHouse answers") == 1
    assert "last good data" in text


def test_marks_alone_that_cannot_be_read_are_said(labelled_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        answers,
        "run",
        lambda question, *rest, **values: (away if question == "annotations" else run)(question, *rest, **values),
    )
    text = said(page_opened(FLEET_PAGE, labelled_url, monkeypatch, range="all"))
    assert text.count("no ClickHouse answers") == 1
    assert "What was noted could not be read" in text
