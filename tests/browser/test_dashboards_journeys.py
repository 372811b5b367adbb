"""What a person does with the pages, in a real browser."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from clickhouse_connect.driver.client import Client
from playwright.sync_api import Browser, BrowserContext, Page, expect

from dashboards.links import cell_address
from tests.browser.driven import CHROMIUM, browser, dashboards, drawn, settled
from tests.browser.labelled_cells import STUCK_CELL, STUCK_INSTANCE, labelled_store, store_cells
from tests.browser.late_timers import LateTimer
from tests.fixtures.databases import database, read_only_url

pytestmark = pytest.mark.skipif(not CHROMIUM.exists(), reason=f"no Chromium at {CHROMIUM}: apt-get install chromium")
WAIT_MS = 30_000
WATCH_FADING = """() => {
    window.faintest = 1;
    const look = () => {
        for (const element of document.querySelectorAll('.stMainBlockContainer .stElementContainer'))
            window.faintest = Math.min(window.faintest, parseFloat(getComputedStyle(element).opacity));
        requestAnimationFrame(look);
    };
    look();
}"""
"""Keeps the lowest opacity that anything on the page had since."""
ROWS = """() => [...document.querySelectorAll('[data-testid=stVegaLiteChart] svg .role-axis-label text')]
    .filter(label => label.textContent.includes(' / '))
    .sort((one, other) => one.getBoundingClientRect().y - other.getBoundingClientRect().y)
    .map(label => label.textContent.split(' / ')[0])"""
"""The hosts of Fleet's rows, from the top."""

FADES = """([left, right]) => {
    const style = getComputedStyle(document.querySelector('table'));
    const fades = name => parseFloat(style.getPropertyValue(name)) > 0;
    return fades('--left-fade') === left && fades('--right-fade') === right;
}"""
"""Whether the page's first table fades at its left and at its right."""


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def served(store: Client, data_dir: Path, cases: Path) -> Iterator[str]:
    """Dashboards over five labelled cells."""
    with labelled_store(store, data_dir, cases) as url, dashboards(url) as pages:
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


def verdict(page: Page) -> str:
    """What the Cell page says happened."""
    alert = page.get_by_test_id("stAlert").first
    expect(alert).to_contain_text("plain decode", timeout=WAIT_MS)
    return alert.inner_text()


def test_the_stuck_flag_is_seen(served: str, context: BrowserContext) -> None:
    page = visit(context, f"{served}/?range=all")
    expect(page.get_by_text("2 stuck in plain decode")).to_be_visible()
    marks = page.locator("[data-testid=stVegaLiteChart] svg text")
    expect(marks.filter(has_text=re.compile("^stuck, inflated$"))).to_have_count(1)
    expect(marks.filter(has_text=re.compile("^stuck$"))).to_have_count(1)


def test_the_link_leads_to_the_cell_and_shows_the_same_elsewhere(
    served: str, context: BrowserContext, chromium: Browser
) -> None:
    page = visit(context, f"{served}/?range=all")
    page.get_by_role("link", name=STUCK_CELL).click()
    page.wait_for_url(f"{served}/{cell_address(STUCK_INSTANCE, STUCK_CELL)}")
    told = verdict(drawn(page))
    assert "Stuck in plain decode" in told
    assert len(context.pages) == 1, "a way within the dashboards opens in its place"
    elsewhere = chromium.new_context(timezone_id="America/New_York")
    try:
        assert verdict(visit(elsewhere, page.url)) == told
    finally:
        elsewhere.close()


def test_a_click_on_the_cell_opens_it_and_back_returns(served: str, context: BrowserContext) -> None:
    page = visit(context, f"{served}/?range=all")
    page.locator("[data-testid=stVegaLiteChart] svg text").filter(has_text="stuck, inflated").click()
    page.wait_for_url(re.compile(rf"/cell\?.*engine={STUCK_INSTANCE}&cell={STUCK_CELL}$"))
    assert "Stuck in plain decode" in verdict(drawn(page))
    page.go_back()
    expect(page.get_by_role("heading", name="Which engines are stuck")).to_be_visible()


def test_a_timer_of_the_page_left_does_not_empty_the_one_come_to(served: str, context: BrowserContext) -> None:
    page = context.new_page()
    timer = LateTimer(page)
    page.goto(f"{served}/?range=all")
    drawn(page)
    while not timer.is_known:
        page.wait_for_timeout(100)
    page.locator("[data-testid=stVegaLiteChart] svg text").filter(has_text="stuck, inflated").click()
    page.wait_for_url(re.compile(rf"/cell\?.*engine={STUCK_INSTANCE}&cell={STUCK_CELL}$"))
    assert "Stuck in plain decode" in verdict(drawn(page))
    assert timer.sent


def test_old_data_is_one_click_away_and_the_link_says_so(served: str, context: BrowserContext) -> None:
    page = context.new_page()
    page.goto(served)
    page.get_by_role("button", name="Show all stored time").click()
    expect(page.get_by_text("5 engines in all stored time")).to_be_visible()
    page.wait_for_url(f"{served}/?range=all")


def test_filters_live_in_the_url(served: str, context: BrowserContext) -> None:
    page = visit(context, f"{served}/?range=all")
    page.get_by_role("combobox", name="Host").click()
    page.get_by_role("option", name="gpu-node-018").click()
    expect(page.get_by_text("1 engine in all stored time, none stuck")).to_be_visible()
    assert "host=gpu-node-018" in page.url
    other = visit(context, page.url)
    expect(other.get_by_text("1 engine in all stored time, none stuck")).to_be_visible()


def test_a_table_fades_where_it_goes_on_sideways(served: str, context: BrowserContext) -> None:
    page = visit(context, f"{served}/?range=all")
    page.wait_for_function(FADES, arg=[False, False])
    page.set_viewport_size({"width": 390, "height": 844})
    page.wait_for_function(FADES, arg=[False, True])
    for share, faded in ((0.5, [True, True]), (1, [True, False]), (0, [False, True])):
        scrolled = "(table, share) => { table.scrollLeft = share * (table.scrollWidth - table.clientWidth); }"
        page.locator("table").first.evaluate(scrolled, share)
        page.wait_for_function(FADES, arg=faded)


def test_what_is_asked_in_vain_pushes_no_control_aside(served: str, context: BrowserContext) -> None:
    page = context.new_page()
    page.goto(f"{served}/?range=never&concurrency=none&sort=none")
    settled(page, has_chart=False)
    bar = page.get_by_test_id("stHorizontalBlock").first
    expect(bar.get_by_test_id("stAlert")).to_have_count(3)
    controls, said = (
        [one.bounding_box() for one in bar.get_by_test_id(kind).all()] for kind in ("stWidgetLabel", "stAlert")
    )
    assert max(box["y"] for box in controls if box) < min(box["y"] for box in said if box)
    assert len({box["width"] for box in said if box}) == 1, "each as wide as the page"


def test_a_held_time_is_the_same_in_another_browser_and_zone(
    served: str, context: BrowserContext, chromium: Browser
) -> None:
    page = visit(context, f"{served}/?range=all&host=gpu-node-024")
    page.get_by_role("button", name="Hold this time").click()
    page.wait_for_url(re.compile(r"range=fixed.*to=2|to=2.*range=fixed"))
    expect(page.get_by_text(re.compile(r"1 engine to .*, 1 stuck in plain decode"))).to_be_visible()
    elsewhere = chromium.new_context(timezone_id="America/New_York")
    try:
        other = visit(elsewhere, page.url)
        expect(other.get_by_text(re.compile(r"1 engine to .*, 1 stuck in plain decode"))).to_be_visible()
        here, there = (one.get_by_role("textbox", name="To").input_value() for one in (page, other))
        assert here != there, "each sees the instant in a zone of their own"
    finally:
        elsewhere.close()


def test_holding_a_time_is_one_step_back_and_forth(served: str, context: BrowserContext) -> None:
    page = visit(context, f"{served}/?range=all&host=gpu-node-024")
    before, steps = page.url, page.evaluate("history.length")
    page.get_by_role("button", name="Hold this time").click()
    expect(page.get_by_text(re.compile(r"1 engine to .*, 1 stuck in plain decode"))).to_be_visible()
    held = page.url
    assert "range=fixed" in held
    assert page.evaluate("history.length") == steps + 1
    page.go_back()
    expect(page.get_by_text("1 engine in all stored time, 1 stuck")).to_be_visible()
    expect(page.get_by_text("live")).to_be_visible()
    assert page.url == before
    page.go_forward()
    expect(page.get_by_text(re.compile(r"1 engine to .*, 1 stuck in plain decode"))).to_be_visible()
    assert page.url == held
    page.get_by_role("button", name="Up to now again").click()
    expect(page.get_by_text("1 engine in all stored time, 1 stuck")).to_be_visible()
    assert "fixed" not in page.url
    assert "to=" not in page.url
    assert page.evaluate("history.length") == steps + 2


def test_a_link_opened_just_after_a_start_has_the_whole_app(
    store: Client, data_dir: Path, cases: Path, chromium: Browser
) -> None:
    with labelled_store(store, data_dir, cases, ("r014",)) as url, dashboards(url) as pages:
        page = chromium.new_page()
        page.goto(f"{pages}/{cell_address(STUCK_INSTANCE, STUCK_CELL)}")
        drawn(page)
        expect(page.get_by_role("link", name="Fleet")).to_be_visible()
        page.close()


def test_new_cells_appear_without_a_reload_and_nothing_is_drawn_anew(
    store: Client, data_dir: Path, cases: Path, context: BrowserContext
) -> None:
    with database(store) as name, read_only_url(name, data_dir) as url, dashboards(url) as pages:
        store_cells(store, cases, ("r008",))
        page = visit(context, f"{pages}/?range=all")
        page.evaluate("document.querySelector('[data-testid=stVegaLiteChart] svg').dataset.first = 'yes'")
        page.get_by_test_id("stMain").evaluate("main => main.scrollTo(0, 60)")
        page.evaluate(WATCH_FADING)
        store_cells(store, cases, ("r014",))
        expect(page.get_by_text("2 engines in all stored time, 1 stuck")).to_be_visible(timeout=WAIT_MS)
        expect(page.locator("[data-testid=stVegaLiteChart] svg text").filter(has_text="stuck, inflated")).to_have_count(
            1
        )
        assert page.evaluate("document.querySelector('[data-testid=stVegaLiteChart] svg').dataset.first") == "yes"
        assert page.evaluate("window.faintest") == 1
        # The stuck engine came last, and stands first all the same.
        assert page.evaluate(ROWS) == ["gpu-node-024", "gpu-node-018"]


def test_clickhouse_goes_away_and_comes_back(
    store: Client, data_dir: Path, cases: Path, context: BrowserContext
) -> None:
    with database(store) as name:
        store_cells(store, cases, ("r014",))
        with read_only_url(name, data_dir) as url, dashboards(url) as pages:
            page = visit(context, f"{pages}/?range=all")
            expect(page.get_by_text("1 engine in all stored time, 1 stuck")).to_be_visible()
            store.command(f"RENAME TABLE {name}.graph_executions TO {name}.kept")
            expect(page.get_by_text("last good data")).to_be_visible(timeout=WAIT_MS)
            expect(page.get_by_text("1 engine in all stored time, 1 stuck")).to_be_visible()
            assert "Traceback" not in page.content()
            store.command(f"RENAME TABLE {name}.kept TO {name}.graph_executions")
            expect(page.get_by_text("last good data")).to_be_hidden(timeout=WAIT_MS)


def test_clickhouse_was_never_there(context: BrowserContext) -> None:
    with dashboards("http://127.0.0.1:9/tachograph") as pages:
        page = context.new_page()
        page.goto(pages)
        expect(page.get_by_text("no ClickHouse answers at")).to_be_visible(timeout=WAIT_MS)
        expect(page.get_by_text("TACHOGRAPH_CLICKHOUSE_URL")).to_be_visible()
        assert "Traceback" not in page.content()
