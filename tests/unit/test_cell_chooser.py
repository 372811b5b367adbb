"""Which spans of time are asked for cells to choose from."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pandas as pd
import pytest
import streamlit as st
from clickhouse_connect.driver.client import Client

from dashboards.links import CELL_PAGE
from dashboards.parts.cell_chooser import OFFERED_MAX, RECENTLY, first_found
from dashboards.reading.answers import Answer
from tests.fixtures.asking import START
from tests.fixtures.databases import database, read_only_url
from tests.fixtures.pages import page_opened
from tests.fixtures.query_rows import ENGINE, insert, round_of

SOME = Answer(pd.DataFrame({"cell": ["1"]}), at=pd.Timestamp("2026-11-01", tz="UTC").to_pydatetime())
NONE = Answer(at=SOME.at)
UNKNOWN = Answer(problem="away")


@pytest.mark.parametrize(
    ("answers", "told", "asked"),
    [
        ([SOME, SOME], SOME, 1),
        ([NONE, SOME], SOME, 2),
        ([NONE, NONE], NONE, 2),
        ([UNKNOWN, SOME], UNKNOWN, 1),
    ],
    ids=["an hour has some", "only the day has some", "neither", "nobody answers"],
)
def test_a_day_is_asked_only_where_an_hour_has_none(answers: list[Answer], told: Answer, asked: int) -> None:
    spans: list[dict[str, object]] = []

    def ask(limit: int, **span: object) -> Answer:
        assert limit == 20
        spans.append(span)
        return answers[len(spans) - 1]

    assert first_found(ask, RECENTLY) is told
    assert spans == list(RECENTLY[:asked])


def test_a_clock_that_is_years_ahead_is_not_all_that_is_offered(
    store: Client, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_ms = (datetime.now(UTC) - START) / timedelta(milliseconds=1)
    years_ms = timedelta(days=1300) / timedelta(milliseconds=1)
    ahead = ENGINE._replace(service_instance_id="engine-ahead", host_name="node-ahead")
    with database(store) as name, read_only_url(name, data_dir) as url:
        insert(store, [round_of(n, now_ms + years_ms + 30_000 * n, "P128", 28) for n in range(25)], ahead)
        only_ahead = page_opened(CELL_PAGE, url, monkeypatch).get("page_link")
        insert(store, [round_of(0, now_ms - 3_600_000 * 2, "P128", 28)])
        st.cache_data.clear()
        links = page_opened(CELL_PAGE, url, monkeypatch).get("page_link")
    assert len(only_ahead) == OFFERED_MAX
    assert ["node-1" in link.proto.label for link in links] == [True]
