"""Every page, light and dark, by axe-core; without an error in its console; and on a telephone without scrolling sideways."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Error, Page

from tests.browser.accessibility import AXE, COLOURS, FOREIGN, RULES, Violation, violations
from tests.browser.driven import CHROMIUM, browser, settled
from tests.browser.staged import PLACES, Place, Stage, staged

pytestmark = pytest.mark.skipif(not CHROMIUM.exists(), reason=f"no Chromium at {CHROMIUM}: apt-get install chromium")
WITH_AXE = pytest.mark.skipif(not AXE.exists(), reason=f"no axe-core at {AXE}: make axe")
GROUND = "getComputedStyle(document.querySelector('.stApp')).backgroundColor"
TOO_WIDE = """() => [document.documentElement, document.querySelector('[data-testid=stMain]')]
    .some(element => element.scrollWidth > element.clientWidth)"""
TESTED = [place for place in PLACES if place.name not in ("fleet-all", "cell-execution")]
"""The others are the same pages with more rows."""
SPOILT = """() => {
    const main = document.querySelector('.stMainBlockContainer');
    main.insertAdjacentHTML('beforeend', '<button id="spoilt"></button>');
    main.style.minWidth = '1200px';
}"""
"""A button without a name, on a page that is too wide."""
WRONG = """async () => {
    console.error('said');
    setTimeout(() => { throw new Error('thrown'); });
    await fetch('./cell/_stcore/health');
}"""


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory, cases: Path) -> Iterator[Stage]:
    with staged(tmp_path_factory.mktemp("stage"), cases) as built:
        yield built


@pytest.fixture(scope="module")
def page(stage: Stage) -> Iterator[Page]:
    with browser() as chromium:
        yield desk(chromium)


@pytest.fixture
def errors(page: Page) -> Iterator[list[str]]:
    """What goes wrong in the browser from now on: errors in the console, and what was asked for and not had."""
    found: list[str] = []

    def heard(message: ConsoleMessage) -> None:
        if message.type == "error":
            found.append(f"{message.text} {message.location['url']}")

    def thrown(error: Error) -> None:
        found.append(str(error))

    page.on("console", heard)
    page.on("pageerror", thrown)
    yield found
    page.remove_listener("console", heard)
    page.remove_listener("pageerror", thrown)


def desk(chromium: Browser) -> Page:
    context = chromium.new_context(viewport={"width": 1440, "height": 900})
    context.set_default_timeout(60_000)
    return context.new_page()


def opened(page: Page, stage: Stage, place: Place) -> Page:
    page.set_viewport_size({"width": 1440, "height": 900})
    page.emulate_media(color_scheme="light")
    page.goto(f"{stage.url}/{place.path}")
    return settled(page, place.has_chart)


def in_scheme(page: Page, dark: bool) -> Page:
    """The page once it has followed its viewer into the dark, or back."""
    page.emulate_media(color_scheme="dark" if dark else "light")
    page.wait_for_function(f"dark => (parseInt({GROUND}.slice(4)) < 128) === dark", arg=dark)
    return settled(page)


def told(found: list[Violation]) -> str:
    return "\n".join(f"{one.rule}: {one.selector}\n  {one.html}\n  {one.why}" for one in found)


@WITH_AXE
@pytest.mark.parametrize("place", TESTED, ids=[place.name for place in TESTED])
def test_a_page_keeps_nobody_out(page: Page, stage: Stage, place: Place, errors: list[str]) -> None:
    opened(page, stage, place)
    assert not errors
    for dark in (False, True):
        in_scheme(page, dark) if place.has_chart else page.emulate_media(color_scheme="dark" if dark else "light")
        found = violations(page, COLOURS if dark else RULES)
        assert not found, f"{'dark' if dark else 'light'}:\n{told(found)}"
    page.set_viewport_size({"width": 390, "height": 844})
    settled(page, place.has_chart)
    page.wait_for_function(f"!({TOO_WIDE})()", timeout=15_000)  # charts take the new width one by one
    assert "Traceback" not in page.content()
    assert not errors


@WITH_AXE
def test_the_checks_can_fail(page: Page, stage: Stage, errors: list[str]) -> None:
    opened(page, stage, PLACES[0]).evaluate(SPOILT)
    page.evaluate(WRONG)
    assert "button-name" in {one.rule for one in violations(page)}
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate(TOO_WIDE)
    settled(page)
    assert ["said" in errors[0], "thrown" in "".join(errors), "404" in "".join(errors)] == [True] * 3


def test_what_is_left_to_others_is_narrow() -> None:
    for foreign in FOREIGN:
        assert "*" not in foreign.within
        assert foreign.within not in ("", "html", "body", ".stApp", "[data-testid=stMain]")
        assert foreign.reason
