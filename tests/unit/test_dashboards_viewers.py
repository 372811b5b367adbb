"""Ten viewers cost ClickHouse about what one costs: counted where ClickHouse is asked."""

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import streamlit as st
from clickhouse_connect.driver.client import Client
from streamlit.testing.v1 import AppTest

from dashboards.links import FLEET_PAGE
from dashboards.reading import answers
from tests.browser.labelled_cells import labelled_store
from tests.fixtures.counting_proxy import counting
from tests.fixtures.pages import checked, page_opened

VIEWERS = 10
LOOKS = 4
"""How often each of them looks."""


@pytest.fixture
def counted(store: Client, data_dir: Path, cases: Path) -> Iterator[tuple[str, Counter[str]]]:
    """A store, and how often each question reached it."""
    with labelled_store(store, data_dir, cases, ("r008", "r014")) as url, counting(url) as proxied:
        yield proxied
    st.cache_data.clear()


def look(viewers: list[AppTest]) -> float:
    """Every one of them looks again and again; how long that took, in s."""
    began = time.monotonic()
    for _ in range(LOOKS):
        for viewer in viewers:
            checked(viewer.run())
    return time.monotonic() - began


def test_ten_viewers_ask_what_one_asks(counted: tuple[str, Counter[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    url, asked = counted
    viewers = [page_opened(FLEET_PAGE, url, monkeypatch, range="all") for _ in range(VIEWERS)]
    asked.clear()
    elapsed_s = look(viewers)
    # One viewer asks each question as often as its answer is no longer fresh, and no more.
    as_one_asks = elapsed_s / answers.FRESH_S + 2
    if as_one_asks > VIEWERS * LOOKS / 2:
        pytest.skip(f"too slow a machine to tell: {VIEWERS * LOOKS} looks took {elapsed_s:.0f} s")
    assert asked, "nothing was asked: the looks were over before an answer grew old"
    assert max(asked.values()) <= as_one_asks, asked


def test_without_a_shared_answer_each_would_ask(
    counted: tuple[str, Counter[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, asked = counted
    monkeypatch.setattr(answers, "shared_answer", answers.asked_now)
    viewers = [page_opened(FLEET_PAGE, url, monkeypatch, range="all") for _ in range(2)]
    asked.clear()
    look(viewers)
    assert max(asked.values()) >= 2 * LOOKS
