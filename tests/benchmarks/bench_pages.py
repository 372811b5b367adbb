"""The dashboards in a real browser over many executions: how late Fleet's chart is, and how soon a page answers.

Side by side in one run: Fleet, and a Streamlit page with nothing but one chart. The time is that from asking for the
page until a chart stands in it, of a browser that has nothing of it, the median of several. Interactions are timed
from the click until the page shows what was asked for, its chart included. The store is kept in build/ for the next
time; another benchmark's of a generated fleet does as well. Its newest cells are judged first, as a collector would have.

python -m tests.benchmarks.bench_pages --executions 100000000
python -m tests.benchmarks.bench_pages --store build/bench-live-100080000-1a2b3c4d
"""

import argparse
import hashlib
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from clickhouse_connect.driver.client import Client
from playwright.sync_api import Browser, Page

from collector.judging.judging import judge_cells
from collector.store.clickhouse import open_store
from collector.store.migrations import apply_schema, schema_files
from dashboards.links import cell_address
from tests.benchmarks.report import Result, show, table_of
from tests.browser.driven import CHART, READY_S, browser, dashboards, settled, wait_until_served
from tests.fixtures.generated import generate
from tests.fixtures.ports import free_port
from tests.fixtures.running import running_collector

LATER_GOAL_MS: Final = 400.0
ANSWER_GOAL_MS: Final = 500.0
EXECUTIONS, QUICK_EXECUTIONS = 10_000_000, 1_000_000
LOADS, QUICK_LOADS = 7, 3
ENDED: Final = "2026-11-02T12:00:00Z"
"""Of the generated fleet."""
RANGES: Final = {"2 h": "2026-11-02T10:00:00Z", "24 h": "2026-11-01T12:00:00Z"}
EMPTY_PAGE: Final = """
import altair as alt
import pandas as pd
import streamlit as st

rows = pd.DataFrame({"x": range(10), "y": range(10)})
st.altair_chart(alt.Chart(rows).mark_point().encode(x="x:Q", y="y:Q"))
"""
JUDGED_STRETCHES: Final = 12
"""Stretches of ten minutes that are judged before measuring: the newest two hours."""
HOSTS: Final = ("gpu-node-001", "gpu-node-002", "gpu-node-003", "gpu-node-004", "gpu-node-005")
"""Chosen one after the other."""
SEQUENCES: Final = range(1210, 1215)
"""Of executions in the second cell of an engine."""
NARROWED: Final = """host => {
    const names = [...document.querySelectorAll('[data-testid=stVegaLiteChart] svg text')]
        .map(text => text.textContent).filter(text => text.startsWith('gpu-node-'));
    return names.length > 0 && names.every(name => name.startsWith(host));
}"""
"""Whether the grid's rows are one host's."""
BUILD: Final = Path("build")


class Served(NamedTuple):
    """Two servers, and how much is stored behind one of them."""

    dashboards_url: str
    empty_url: str
    executions: int
    loads: int


def results(quick: bool) -> Iterable[Result]:
    """The rows of the report."""
    return measured(prepared(QUICK_EXECUTIONS if quick else EXECUTIONS), QUICK_LOADS if quick else LOADS)


def measured(data_dir: Path, loads: int) -> Iterator[Result]:
    """Everything, over the executions that are stored there."""
    executions = ready(data_dir)
    with (
        running_collector(data_dir) as addresses,
        dashboards(addresses.clickhouse_url, TACHOGRAPH_DATA_DIR=str(data_dir)) as url,
        empty_page() as empty_url,
        browser() as chromium,
    ):
        served = Served(url, empty_url, executions, loads)
        for name, since in RANGES.items():
            yield from fleet_results(chromium, served, name, since)
        yield from interaction_results(chromium, served)


def prepared(executions: int) -> Path:
    """The data directory with so many executions, generated unless they are there."""
    schema = hashlib.sha256("".join(change.sha256 for change in schema_files()).encode()).hexdigest()
    data_dir = BUILD / f"bench-pages-{executions}-{schema[:8]}"
    with closing(open_store(data_dir)) as store:
        apply_schema(store)
        if stored(store) != executions:
            generate(store, executions)
    return data_dir


def ready(data_dir: Path) -> int:
    """Judge what is stored there as far as nobody has; how many executions that is."""
    since_then = int((datetime.now(UTC) - datetime.fromisoformat(ENDED)).total_seconds()) + 2 * 86_400
    with closing(open_store(data_dir)) as store:
        apply_schema(store)
        judge_cells(store, since_then, JUDGED_STRETCHES)
        return stored(store)


def stored(store: Client) -> int:
    """Executions in the store."""
    return int(store.command("SELECT count() FROM graph_executions"))  # type: ignore[arg-type]


@contextmanager
def empty_page() -> Iterator[str]:
    """A Streamlit page with one chart of ten points and nothing else; its URL."""
    port = free_port()
    with TemporaryDirectory() as directory:
        script = Path(directory) / "page.py"
        script.write_text(EMPTY_PAGE)
        options = ["--server.headless=true", f"--server.port={port}", "--server.fileWatcherType=none"]
        command = [sys.executable, "-m", "streamlit", "run", str(script), *options, "--browser.gatherUsageStats=false"]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_until_served(f"http://127.0.0.1:{port}/_stcore/health", process)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(10)


def fleet_results(chromium: Browser, served: Served, name: str, since: str) -> Iterator[Result]:
    """How much later Fleet's chart stands than the empty page's: for whoever looks first, and for those after."""
    fleet = f"{served.dashboards_url}/?range=fixed&from={since}&to={ENDED}"
    load_ms(chromium, served.empty_url)  # the servers' own first page, which imports half of Python
    load_ms(chromium, f"{served.dashboards_url}/sql")
    first_ms = load_ms(chromium, fleet)
    empty, full = [], []
    for _ in range(served.loads):
        empty.append(load_ms(chromium, served.empty_url))
        full.append(load_ms(chromium, fleet))
    packages = ("streamlit", "altair", "chdb", "playwright")
    said = f"pages: Fleet's chart over {name}, against an empty page's"
    yield Result.of(f"{said}", median(full), median(empty), "ms", served.executions, *packages)
    later = median(full) - median(empty)
    yield Result.of(f"{said}: later by, against the goal", later, LATER_GOAL_MS, "ms", served.executions, *packages)
    later = first_ms - median(empty)
    yield Result.of(f"{said}: later by, whoever looks first", later, LATER_GOAL_MS, "ms", served.executions, *packages)


def load_ms(chromium: Browser, url: str) -> float:
    """From asking for a page until its first chart stands, or its heading where it has none, in a new browser."""
    context = chromium.new_context(viewport={"width": 1440, "height": 900})
    try:
        page = context.new_page()
        began = time.perf_counter()
        page.goto(url)
        page.locator("h1" if url.endswith("/sql") else CHART).first.wait_for(timeout=READY_S * 1000)
        return (time.perf_counter() - began) * 1e3
    finally:
        context.close()


def interaction_results(chromium: Browser, served: Served) -> Iterator[Result]:
    """How soon a page shows what somebody asked of it."""
    context = chromium.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()
    try:
        for name, answer_ms in {**on_fleet(page, served), **on_cell(page, served)}.items():
            yield Result.of(
                f"pages: {name}, against the goal", answer_ms, ANSWER_GOAL_MS, "ms", served.executions, "streamlit"
            )
    finally:
        context.close()


def on_fleet(page: Page, served: Served) -> dict[str, float]:
    """One host after another on the Fleet page."""
    page.goto(f"{served.dashboards_url}/?range=fixed&from={RANGES['24 h']}&to={ENDED}")
    settled(page)

    def host(name: str) -> float:
        page.get_by_role("combobox", name="Host").fill(name)
        page.get_by_role("option", name=name).wait_for()
        answered_ms = timed(
            lambda: page.keyboard.press("Enter"),
            lambda: page.wait_for_function(NARROWED, arg=name, timeout=READY_S * 1000),
        )
        settled(page)
        return answered_ms

    return {"Fleet: one host chosen, of 24 h": median(map(host, HOSTS))}


def on_cell(page: Page, served: Served) -> dict[str, float]:
    """One execution after another on the Cell page."""
    page.goto(f"{served.dashboards_url}/{cell_address('engine-1', 'bench-1-1')}")
    settled(page)
    page.get_by_label("Execution to see whole").wait_for(timeout=READY_S * 1000)

    def execution(number: int) -> float:
        field = page.get_by_label("Execution to see whole")
        field.fill(str(number))
        shown = page.get_by_role("cell", name=f"{number:,}", exact=True)
        return timed(lambda: field.press("Enter"), shown.wait_for)

    return {"Cell: one execution shown whole": median(execution(number) for number in SEQUENCES)}


def timed(act: Callable[[], object], wait: Callable[[], object]) -> float:
    """From an action until what it asked for stands there, in ms."""
    began = time.perf_counter()
    act()
    wait()
    return (time.perf_counter() - began) * 1e3


def main() -> None:
    """Measure, and show."""
    parser = argparse.ArgumentParser(description="The dashboards in a real browser.")
    parser.add_argument("--executions", type=int, default=EXECUTIONS)
    parser.add_argument("--loads", type=int, default=LOADS)
    parser.add_argument("--store", type=Path, help="a generated fleet's data directory, in place of one of its own")
    given = parser.parse_args()
    data_dir = given.store or prepared(given.executions)
    show(table_of(measured(data_dir, given.loads), f"the executions of {data_dir}"))


if __name__ == "__main__":
    main()
