"""Debian's Chromium, driven by Playwright, and the dashboards served as a user starts them."""

import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from tests.fixtures.ports import free_port

CHROMIUM = Path("/usr/bin/chromium")
ROOT = Path(__file__).parents[2]
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
READY_S = 60.0
AT_REST = """() => {
    const busy = '[data-testid=stStatusWidget], [data-testid=stSpinner], [data-testid=stSkeleton]';
    window.restedSince = document.querySelector(busy) ? undefined : window.restedSince ?? performance.now();
    return window.restedSince !== undefined && performance.now() - window.restedSince > 500;
}"""
"""Whether nothing has been on its way for half a second: a page comes to rest for a moment before it asks."""
CONTENT = ".stMainBlockContainer :is([data-testid=stAlert], [data-testid=stMarkdown], [data-testid=stSelectbox])"
"""What a page has beside its heading, once it knows anything."""
CHART = "[data-testid=stVegaLiteChart] canvas, [data-testid=stVegaLiteChart] svg"


@contextmanager
def browser() -> Iterator[Browser]:
    """A headless Chromium."""
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS)
        try:
            yield chromium
        finally:
            chromium.close()


@contextmanager
def dashboards(clickhouse_url: str, **settings: str) -> Iterator[str]:
    """The dashboards on a free port, with these settings (`TACHOGRAPH_…`) beside; their URL."""
    port = free_port()
    command = [sys.executable, "-m", "tachograph", "dashboard", "--dashboard-port", str(port)]
    process = subprocess.Popen(
        [*command, "--clickhouse-url", clickhouse_url],
        cwd=ROOT,
        env=os.environ | {"TACHOGRAPH_LISTEN_ADDRESS": "127.0.0.1"} | settings,
    )
    try:
        url = f"http://127.0.0.1:{port}"
        wait_until_served(f"{url}/_stcore/health", process)
        yield url
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def wait_until_served(url: str, process: subprocess.Popen[bytes]) -> None:
    """Return once the URL answers.

    Raises:
        RuntimeError: the process ended, or the time is up.
    """
    deadline = time.monotonic() + READY_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=1):  # noqa: S310
                return
        except OSError:
            time.sleep(0.2)
    raise RuntimeError(f"the dashboards do not answer at {url} (exit code {process.poll()})")


def drawn(page: Page) -> Page:
    """The page, once its first chart is there and the script has come to rest."""
    return settled(page)


def settled(page: Page, has_chart: bool = True) -> Page:
    """The page, once its heading, and its first chart or else its first words, are there and the script has come to rest."""
    page.locator("h1").first.wait_for(timeout=READY_S * 1000)
    page.locator(CHART if has_chart else CONTENT).first.wait_for(timeout=READY_S * 1000)
    page.wait_for_function(AT_REST, timeout=READY_S * 1000, polling=100)
    return page
