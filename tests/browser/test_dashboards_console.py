"""The SQL console, the way from an alert to its cell, and the dashboards' password, in a real browser."""

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pandas as pd
import pytest
from clickhouse_connect.driver.client import Client
from playwright.sync_api import Browser, BrowserContext, Page, expect

from dashboards.links import cell_address
from queries.alerts.states import State
from tests.browser.driven import CHROMIUM, browser, dashboards
from tests.browser.labelled_cells import STUCK_CELL, STUCK_INSTANCE, labelled_store
from tests.fixtures.alert_state import entry, left_behind

pytestmark = pytest.mark.skipif(not CHROMIUM.exists(), reason=f"no Chromium at {CHROMIUM}: apt-get install chromium")
WAIT_MS = 30_000
PASSWORD = "a-password-of-the-tests"  # noqa: S105
COUNTING = "SELECT cell_id, count() AS executions FROM graph_executions GROUP BY cell_id ORDER BY cell_id"


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def stored(store: Client, data_dir: Path, cases: Path) -> Iterator[str]:
    with labelled_store(store, data_dir, cases, ("r008", "r014")) as url:
        yield url


@pytest.fixture(scope="module")
def served(stored: str) -> Iterator[str]:
    with dashboards(stored) as pages:
        yield pages


@pytest.fixture
def context(chromium: Browser) -> Iterator[BrowserContext]:
    opened = chromium.new_context(viewport={"width": 1440, "height": 900})
    opened.set_default_timeout(WAIT_MS)
    yield opened
    opened.close()


def written(context: BrowserContext, served: str, statement: str) -> Page:
    """The console, after somebody typed a statement and asked."""
    page = context.new_page()
    page.goto(f"{served}/sql")
    page.get_by_role("radio", name="SQL of my own").click()
    page.get_by_role("textbox", name="Statement").fill(statement)
    page.get_by_role("button", name="Ask").click()
    return page


def test_a_write_is_refused_and_nothing_is_lost(served: str, context: BrowserContext) -> None:
    page = written(context, served, "DROP TABLE graph_executions")
    refused = page.get_by_test_id("stAlert")
    expect(refused).to_contain_text("readonly mode", timeout=WAIT_MS)
    expect(refused.locator("p")).to_have_count(1)
    assert "Traceback" not in page.content()
    page.get_by_role("textbox", name="Statement").fill(COUNTING)
    page.get_by_role("button", name="Ask").click()
    expect(page.get_by_text("2 rows.")).to_be_visible(timeout=WAIT_MS)


def test_the_link_shows_the_same_elsewhere_and_the_file_holds_it(
    served: str, context: BrowserContext, chromium: Browser, tmp_path: Path
) -> None:
    page = written(context, served, COUNTING)
    expect(page.get_by_text("2 rows.")).to_be_visible(timeout=WAIT_MS)
    page.wait_for_url(re.compile("sql=SELECT"))
    elsewhere = chromium.new_context()
    try:
        other = elsewhere.new_page()
        other.goto(page.url)
        expect(other.get_by_text("2 rows.")).to_be_visible(timeout=WAIT_MS)
        with other.expect_download(timeout=WAIT_MS) as download:
            other.get_by_role("button", name="Download CSV").click()
        download.value.save_as(tmp_path / "answer.csv")
    finally:
        elsewhere.close()
    assert list(pd.read_csv(tmp_path / "answer.csv").cell_id) == ["bench-r008", "bench-r014"]


def test_a_named_query_by_hand(served: str, context: BrowserContext) -> None:
    page = context.new_page()
    page.goto(f"{served}/sql?query=cells")
    page.get_by_role("textbox", name="last_s").fill("0")
    page.get_by_role("textbox", name="last_s").press("Enter")
    expect(page.get_by_text("2 rows.")).to_be_visible(timeout=WAIT_MS)
    page.wait_for_url(re.compile("p_last_s=0"))


def test_from_an_alert_to_its_cell(stored: str, context: BrowserContext, tmp_path: Path) -> None:
    left_behind(tmp_path, entry("StuckInPlain", State.FIRING))
    with dashboards(stored, TACHOGRAPH_DATA_DIR=str(tmp_path)) as pages:
        page = context.new_page()
        page.goto(f"{pages}/alerts")
        expect(page.get_by_text("1 alert firing")).to_be_visible(timeout=WAIT_MS)
        page.get_by_text("What to do about StuckInPlain").click()
        expect(page.get_by_text("Read the finding of StuckInPlain.")).to_be_visible()
        with context.expect_page() as opened:
            page.get_by_role("link", name="StuckInPlain").click()
        cell = opened.value
        expect(cell.get_by_test_id("stAlert").first).to_contain_text("Stuck in plain decode", timeout=WAIT_MS)
        assert cell.url == f"{pages}/{cell_address(STUCK_INSTANCE, STUCK_CELL)}"


def test_behind_a_password(stored: str, chromium: Browser) -> None:
    with dashboards(stored, TACHOGRAPH_DASHBOARD_PASSWORD=PASSWORD) as pages:
        stranger = chromium.new_context()
        friend = chromium.new_context(http_credentials={"username": "anybody", "password": PASSWORD})
        try:
            assert stranger.request.get(f"{pages}/?range=all").status == 401
            page = friend.new_page()
            page.goto(f"{pages}/?range=all")
            expect(page.get_by_text("2 engines in all stored time")).to_be_visible(timeout=WAIT_MS)
            another = friend.new_page()
            another.goto(f"{pages}/sql?with={quote('SQL of my own')}&sql={quote(COUNTING)}")
            expect(another.get_by_text("2 rows.")).to_be_visible(timeout=WAIT_MS)
        finally:
            stranger.close()
            friend.close()
