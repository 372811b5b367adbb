"""Addresses that ask for what there is not: told, and shown is something that there is."""

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from clickhouse_connect.driver.client import Client

from collector.acceptance import ReceivedRequest
from collector.decoding.wire import request_id_of
from collector.store.request_store import RequestStore
from dashboards.links import CELL_PAGE, COMPARE_PAGE, FLEET_PAGE, GRAPHS_PAGE, HEALTH_PAGE, SQL_PAGE, WHAT_IF_PAGE
from dashboards.parts.address import KNOWN
from tests.browser.labelled_cells import STUCK_CELL, STUCK_INSTANCE, labelled_store
from tests.fixtures.otlp_files import requests_in
from tests.fixtures.pages import checked, page_opened, said

TWIN = "11111111-2222-3333-4444-555566667777"
"""Another engine, with a cell of the same name."""
HOLDS_THE_QUESTION = "The address of this page holds the question"
STUCK = {"engine": STUCK_INSTANCE, "cell": STUCK_CELL}

CELLS = ("r008", "r014")


@pytest.fixture(scope="module")
def twins_url(store: Client, data_dir: Path, cases: Path) -> Iterator[str]:
    """A store in which two engines have a cell of one name."""
    with labelled_store(store, data_dir, cases, ("r014",)) as url:
        now_ms = time.time_ns() // 1_000_000
        bodies = [
            body.replace(STUCK_INSTANCE.encode(), TWIN.encode())
            for body in requests_in(cases / "cells" / "r014.otlp.gz")
        ]
        RequestStore(store).insert([ReceivedRequest.of(request_id_of(body), body, now_ms) for body in bodies])
        yield url


@pytest.mark.parametrize(
    ("page", "asked", "told"),
    [
        (
            FLEET_PAGE,
            {"concurrency": "abc", "sort": "nope", "range": "banana"},
            (
                "concurrency=abc, which is no whole number of 1 or more.",
                "sort=nope, which is none of what is lost, name, tokens/s.",
                "range=banana, which is none of 10 min, 30 min",
            ),
        ),
        (FLEET_PAGE, {"concurrency": "-1"}, ("concurrency=-1, which is no whole number of 1 or more.",)),
        (GRAPHS_PAGE, {"measure": "<b>"}, ("measure=<b>, which is none of GPU time, handoff, estimate.",)),
        (
            COMPARE_PAGE,
            {"metric": "speed", "by": "colour"},
            ("metric=speed, which is none of tokens/s", "by=colour, which is none of host, package"),
        ),
        (SQL_PAGE, {"query": "nope"}, ("query=nope, which there is not.",)),
        (SQL_PAGE, {"with": "magic"}, ("with=magic, which is none of a named query, SQL of my own.",)),
        (SQL_PAGE, {"query": "cells", "p_last_s": "0", "show": "film"}, ("show=film, which is none of table, chart.",)),
    ],
)
def test_what_is_asked_in_vain_is_told(
    labelled_url: str, monkeypatch: pytest.MonkeyPatch, page: str, asked: dict[str, str], told: tuple[str, ...]
) -> None:
    text = said(page_opened(page, labelled_url, monkeypatch, **asked))
    for one in told:
        assert f"The address says {one}" in text


def test_it_is_told_until_something_is_chosen(labelled_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    app = page_opened(FLEET_PAGE, labelled_url, monkeypatch, range="all", concurrency="abc", sort="nope")
    assert "2 engines in all stored time" in said(app)
    checked(app.run())
    assert "concurrency=abc" in said(app)
    checked(app.number_input(key="concurrency").set_value(64).run())
    assert "concurrency=abc" not in said(app)
    assert "sort=nope" in said(app)
    checked(app.selectbox(key="sort").set_value("name").run())
    assert "The address says" not in said(app)


def test_another_page_was_not_asked(labelled_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    app = page_opened(FLEET_PAGE, labelled_url, monkeypatch, range="all", sort="nope")
    checked(app.switch_page(SQL_PAGE).run())
    checked(app.switch_page(FLEET_PAGE).run())
    assert "The address says" not in said(app)


@pytest.mark.parametrize(
    ("page", "asked"),
    [
        (FLEET_PAGE, {"range": "all", "concurrency": "64", "sort": "name"}),
        (GRAPHS_PAGE, {"range": "all", "measure": "handoff"}),
        (COMPARE_PAGE, {"metric": "plain fraction", "by": "host"}),
        (CELL_PAGE, {**STUCK, "execution": "784"}),
        (SQL_PAGE, {"query": "cells", "p_last_s": "0", "show": "chart", "mark": "bars"}),
    ],
)
def test_what_there_is_is_not_told_of(
    labelled_url: str, monkeypatch: pytest.MonkeyPatch, page: str, asked: dict[str, str]
) -> None:
    assert "The address" not in said(page_opened(page, labelled_url, monkeypatch, **asked)).replace(
        HOLDS_THE_QUESTION, ""
    )


@pytest.mark.parametrize(
    ("page", "asked"),
    [
        (FLEET_PAGE, {"hots": "gpu-node-024"}),
        (CELL_PAGE, {"instance": STUCK_INSTANCE, "name": STUCK_CELL}),
        (SQL_PAGE, {"last_s": "0"}),
        (HEALTH_PAGE, {"p_last_s": "0"}),
    ],
)
def test_a_parameter_that_a_page_does_not_know_is_told(
    labelled_url: str, monkeypatch: pytest.MonkeyPatch, page: str, asked: dict[str, str]
) -> None:
    text = said(page_opened(page, labelled_url, monkeypatch, **asked))
    assert f"The address has {', '.join(asked)}, which this page does not know" in text


def test_every_parameter_that_a_page_binds_is_known() -> None:
    """By the pages' own sources: a control that is bound to the address has its key in it."""
    bound = re.compile(r'key="(\w+)",\s*bind="query-params"')
    for page, where in {FLEET_PAGE: "", CELL_PAGE: "cell", COMPARE_PAGE: "compare", SQL_PAGE: "sql"}.items():
        names = set(bound.findall(Path(page).read_text("utf-8")))
        assert names
        assert names <= KNOWN[where]


@pytest.mark.parametrize("page", [CELL_PAGE, WHAT_IF_PAGE])
def test_a_cell_that_is_not_stored_is_no_dead_end(
    labelled_url: str, monkeypatch: pytest.MonkeyPatch, page: str
) -> None:
    app = page_opened(page, labelled_url, monkeypatch, engine="nope", cell="nope")
    assert "No execution of this cell is stored; it may have expired. There are these." in said(app)
    assert app.get("page_link")


@pytest.mark.parametrize("page", [CELL_PAGE, WHAT_IF_PAGE])
class TestCellWithoutEngine:
    def test_the_only_one_is_opened(self, labelled_url: str, monkeypatch: pytest.MonkeyPatch, page: str) -> None:
        text = said(page_opened(page, labelled_url, monkeypatch, cell=STUCK_CELL, execution="first"))
        assert f"instance {STUCK_INSTANCE}" in text
        told = "The address says execution=first, which is no whole number of 0 or more."
        assert (told in text) == (page == CELL_PAGE)

    def test_of_several_one_is_chosen(self, twins_url: str, monkeypatch: pytest.MonkeyPatch, page: str) -> None:
        app = page_opened(page, twins_url, monkeypatch, cell=STUCK_CELL)
        assert f"2 engines have a cell {STUCK_CELL}: choose whose." in said(app)
        links = [link.proto.label for link in app.get("page_link")]
        assert len(links) == 2
        assert any(TWIN[-8:] in link for link in links)

    def test_none_is_told_and_others_offered(
        self, labelled_url: str, monkeypatch: pytest.MonkeyPatch, page: str
    ) -> None:
        app = page_opened(page, labelled_url, monkeypatch, cell="bench-nope")
        assert "No execution of a cell bench-nope is stored" in said(app)
        assert app.get("page_link")
