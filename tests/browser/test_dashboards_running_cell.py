"""A cell that runs while somebody looks at it: what comes in is added, and nothing that they did is undone."""

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from clickhouse_connect.driver.client import Client
from playwright.sync_api import Browser, Page, expect

from dashboards.links import cell_address
from engine_hooks.contract.execution import GraphExecution
from engine_hooks.simulator.cell import run_cell
from engine_hooks.simulator.parameters import S_NS, Scenario, steady
from engine_hooks.simulator.recording import CellLabels, simulated_resource
from tests.browser.driven import CHROMIUM, browser, dashboards, drawn
from tests.fixtures.alert_fleets import VirtualTime
from tests.fixtures.alert_fleets import store as store_executions
from tests.fixtures.databases import database, read_only_url

pytestmark = pytest.mark.skipif(not CHROMIUM.exists(), reason=f"no Chromium at {CHROMIUM}: apt-get install chromium")
WAIT_MS = 60_000
ENGINE, CELL = "running-engine", "bench-running"
CELL_S, FIRST_S = 40, 25
"""How long the cell has run, and how much of it is stored when the page is opened."""
STRIP = {"from": 300, "to": 700, "y": 78}
"""Of the timeline's canvas, in px: a stretch of the strip that zooms."""
WATCH = """() => {
    window.replaced = 0;
    new MutationObserver(changes => {
        for (const change of changes)
            for (const node of change.removedNodes)
                window.replaced += node.nodeType === 1 && (node.matches('canvas') || !!node.querySelector('canvas'));
    }).observe(document.body, {childList: true, subtree: true});
}"""
"""Counts the charts that are taken away from now on."""
LOOK = """() => {
    window.looked_at = document.elementFromPoint(720, 300);
    return window.looked_at.getBoundingClientRect().top;
}"""
"""Where on the screen it is what one looks at. How far the page is scrolled may change: a line more above, such as that nothing
arrived for half a minute, scrolls it as far as it is high."""
PICTURE = "document.querySelector('[data-testid=stVegaLiteChart] canvas').toDataURL()"


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as opened:
        yield opened


def executions_of_a_cell() -> list[GraphExecution]:
    """The cell's executions, the last of them submitted just now; without a refresh, so that no lane is added."""
    found: list[GraphExecution] = []
    labels = CellLabels(epoch_unix_ns=time.time_ns() - CELL_S * S_NS, cell_id=CELL)
    scenario = Scenario("running", phases=steady(), duration_ns=CELL_S * S_NS)
    run_cell(scenario, "drained_share", 1, on_execution=found.append, labels=labels)
    return [one for one in found if one.graph_name in ("P128", "prefill-2048")]


def put(client: Client, executions: list[GraphExecution]) -> None:
    resource = simulated_resource(ENGINE, service_name="engine", host_name="gpu-node-001", engine_version="1")
    store_executions([(0.0, resource, executions)], client, VirtualTime("", time.time_ns()))


def count_shown(page: Page) -> int:
    """Executions, as the head of the page counts them."""
    head = page.get_by_text(re.compile(r"[\d,]+ executions")).first.inner_text()
    (count,) = re.findall(r"([\d,]+) executions", head)
    return int(count.replace(",", ""))


def zoom(page: Page) -> None:
    """Drag across the strip."""
    chart = page.locator("[data-testid=stVegaLiteChart] canvas").first
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + STRIP["from"], box["y"] + STRIP["y"])
    page.mouse.down()
    page.mouse.move(box["x"] + STRIP["to"], box["y"] + STRIP["y"], steps=6)
    page.mouse.up()


def test_what_comes_in_undoes_nothing(store: Client, data_dir: Path, chromium: Browser) -> None:
    with database(store) as name, read_only_url(name, data_dir) as url, dashboards(url) as pages:
        executions = executions_of_a_cell()
        first = [one for one in executions if one.started_at < executions[0].started_at + FIRST_S * S_NS]
        put(store, first)
        page = chromium.new_page(viewport={"width": 1440, "height": 1000})
        page.set_default_timeout(WAIT_MS)
        page.goto(f"{pages}/{cell_address(ENGINE, CELL)}")
        drawn(page)
        assert count_shown(page) == len(first)
        page.evaluate(WATCH)
        whole = page.evaluate(PICTURE)
        zoom(page)
        page.wait_for_function(f"before => {PICTURE} !== before", arg=whole)
        field = page.get_by_label("Execution to see whole")
        field.fill(str(first[5].graph_sequence))
        field.press("Enter")
        expect(page.get_by_text("graph_gpu_start_offset_ns")).to_be_visible()
        page.get_by_test_id("stMain").evaluate("main => main.scrollTo(0, 500)")
        looked_at = page.evaluate(LOOK)
        put(store, executions[len(first) :])
        page.wait_for_function(
            "all => document.body.innerText.includes(all)", arg=f"{len(executions):,} executions", timeout=WAIT_MS
        )
        drawn(page)
        assert page.evaluate("window.replaced") == 0, "the chart was drawn anew: its zoom is gone"
        # The browser scrolls by whole pixels.
        moved = page.evaluate("window.looked_at.getBoundingClientRect().top") - looked_at
        assert abs(moved) <= 1, "what one looks at moved"
        expect(field).to_have_value(str(first[5].graph_sequence))
        page.close()
