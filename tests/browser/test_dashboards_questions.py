"""From a stuck cell to the poisoned estimate and to another cost model, and the comparison of two arms, in a browser."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from clickhouse_connect.driver.client import Client
from playwright.sync_api import Browser, BrowserContext, Error, Page, expect

from dashboards.links import cell_address
from tests.browser.driven import CHROMIUM, browser, dashboards, drawn
from tests.browser.labelled_cells import STUCK_CELL, STUCK_INSTANCE, store_cells
from tests.browser.two_arms import two_arms_store

pytestmark = pytest.mark.skipif(not CHROMIUM.exists(), reason=f"no Chromium at {CHROMIUM}: apt-get install chromium")
WAIT_MS = 60_000
POISON = 784
IN_THE_FIRST_LANE = {"x": 700, "y": 172}
"""Of the timeline's canvas, in px: below title, legend and overview, amid the plain decode."""


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def served(store: Client, data_dir: Path, cases: Path) -> Iterator[str]:
    """Dashboards over the benchmark of two arms and a stuck cell."""
    with two_arms_store(store, data_dir) as url:
        store_cells(store, cases, ("r014",))
        with dashboards(url) as pages:
            yield pages


@pytest.fixture
def context(chromium: Browser) -> Iterator[BrowserContext]:
    opened = chromium.new_context(viewport={"width": 1440, "height": 900}, timezone_id="Asia/Kolkata")
    opened.set_default_timeout(WAIT_MS)
    yield opened
    opened.close()


def visit(context: BrowserContext, url: str) -> Page:
    page = context.new_page()
    page.goto(url)
    return drawn(page)


def test_from_the_stuck_cell_to_the_poison_and_to_another_model(served: str, context: BrowserContext) -> None:
    page = visit(context, f"{served}/{cell_address(STUCK_INSTANCE, STUCK_CELL)}")
    expect(page.get_by_text(f"Execution {POISON} of P128 held up the pipeline for 81.69 ms")).to_be_visible()
    page.get_by_role("link", name="What another cost model would have done").click()
    expect(page.get_by_text("1,948 of 2,026 decisions (96 %) otherwise")).to_be_visible(timeout=WAIT_MS)
    assert f"cell={STUCK_CELL}" in page.url
    page.get_by_text("Simulate it").click()
    expect(page.get_by_text("By simulation drained_share would have emitted")).to_be_visible(timeout=WAIT_MS)
    page.wait_for_url(re.compile("simulate=true"))


def test_a_click_on_an_execution_shows_all_of_it_and_the_link_says_so(
    served: str, context: BrowserContext, chromium: Browser
) -> None:
    page = visit(context, f"{served}/{cell_address(STUCK_INSTANCE, STUCK_CELL)}")
    chart = page.locator("[data-testid=stVegaLiteChart] canvas").first
    chart.scroll_into_view_if_needed()
    chart.click(position=IN_THE_FIRST_LANE)
    expect(page.get_by_text("graph_gpu_start_offset_ns")).to_be_visible()
    page.wait_for_url(re.compile(r"execution=\d+"))
    elsewhere = chromium.new_page()
    elsewhere.goto(page.url)
    expect(drawn(elsewhere).get_by_text("graph_gpu_start_offset_ns")).to_be_visible(timeout=WAIT_MS)
    elsewhere.close()


def follow(page: Page, mark: str, to: re.Pattern[str]) -> None:
    """Click a mark until its page comes: a chart that is just being drawn anew loses the click."""
    for _ in range(10):
        try:
            page.locator(mark).first.click(force=True)
            page.wait_for_url(to, timeout=6_000)
        except Error:  # Not there in time, or taken away between being found and being clicked.
            continue
        return
    raise AssertionError(f"{page.url} is still there after ten clicks")


def test_the_comparison_of_two_arms_and_the_way_to_its_cells(served: str, context: BrowserContext) -> None:
    page = visit(context, f"{served}/compare")
    expect(page.get_by_text("after is better than before:")).to_be_visible()
    row = page.get_by_role("row", name=re.compile("gpu-node-002"))
    expect(row).to_contain_text("within noise")
    page.get_by_role("combobox", name="Compared by").click()
    page.get_by_role("option", name="plain fraction").click()
    expect(page.get_by_text("plain fraction shifts by")).to_be_visible()
    page.wait_for_url(re.compile(r"metric=plain(\+|%20)fraction"))
    follow(page, "svg path[aria-label*='cell: bench-1-00;']", re.compile(r"/cell\?.*cell=bench-1-00"))
    expect(page.get_by_role("heading", name="What happened in this cell?")).to_be_visible()
