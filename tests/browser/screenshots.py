"""Screenshots of every page, light and dark, as wide as a desk and as a telephone, with a contact sheet to look at.

python -m tests.browser.screenshots                           # every page of a stage of its own, to build/screenshots
python -m tests.browser.screenshots --only cell               # pages whose name contains this
python -m tests.browser.screenshots --url http://127.0.0.1:8501 --path "?range=all"   # one page of what runs there
"""

import argparse
import html
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Literal, NamedTuple

from PIL import Image
from playwright.sync_api import Browser, Page

from tests.browser.driven import ROOT, browser, settled
from tests.browser.staged import PLACES, Place, Stage, cases_here, staged

Scheme = Literal["light", "dark"]
SCHEMES: tuple[Scheme, ...] = ("light", "dark")
HEIGHTS_MAX = 4
"""A page that has more room may draw more."""
SETTLED_MS = 1200
"""Charts fade in; a picture is taken once they stand, in ms."""
ZONE = "Europe/Berlin"
BUILD = Path("build/screenshots")
IMAGES = ROOT / "docs" / "images"
SHOWN = {"fleet-desk-light": "fleet.png", "cell-desk-light": "cell.png", "compare-desk-light": "compare.png"}
"""Which of them the documentation shows."""
SHOWN_PX = 1100


class Window(NamedTuple):
    """A viewer's window, in px."""

    name: str
    width: int
    height: int


WINDOWS = (Window("desk", 1440, 900), Window("phone", 390, 844))


@contextmanager
def looking(chromium: Browser, window: Window, scheme: Scheme) -> Iterator[Page]:
    """An empty page of a viewer in `ZONE`."""
    context = chromium.new_context(
        viewport={"width": window.width, "height": window.height}, color_scheme=scheme, timezone_id=ZONE
    )
    try:
        yield context.new_page()
    finally:
        context.close()


def shoot(page: Page, url: str, place: Place, window: Window, file: Path) -> Path:
    """Take one, as high as the page needs."""
    page.set_viewport_size({"width": window.width, "height": window.height})
    page.goto(f"{url.rstrip('/')}/{place.path}")
    settled(page, place.has_chart).wait_for_timeout(SETTLED_MS)
    for _ in range(HEIGHTS_MAX):
        needed = int(page.evaluate("document.querySelector('[data-testid=stMain]').scrollHeight"))
        if needed <= page.viewport_size["height"]:
            break
        page.set_viewport_size({"width": window.width, "height": needed})
        settled(page, place.has_chart).wait_for_timeout(SETTLED_MS)
    file.parent.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=file)
    return file


def shoot_all(stage: Stage, places: tuple[Place, ...], folder: Path) -> list[Path]:
    """Every page in every window and scheme."""
    taken = []
    with browser() as chromium:
        for window, scheme in product(WINDOWS, SCHEMES):
            with looking(chromium, window, scheme) as page:
                for place in places:
                    stage.refresh()
                    file = folder / f"{place.name}-{window.name}-{scheme}.png"
                    taken.append(shoot(page, stage.url, place, window, file))
    return taken


def contact_sheet(taken: list[Path], folder: Path) -> Path:
    """All of them on one page, each a link to itself."""
    figures = "\n".join(
        f'<a href="{html.escape(one.name)}"><figure><img src="{html.escape(one.name)}" alt="">'
        f"<figcaption>{html.escape(one.stem)}</figcaption></figure></a>"
        for one in sorted(taken)
    )
    style = "body{font-family:sans-serif;display:flex;flex-wrap:wrap;gap:1rem}figure{margin:0}img{height:22rem}"
    sheet = folder / "index.html"
    sheet.write_text(f"<!doctype html><title>Screenshots</title><style>{style}</style>{figures}", encoding="utf-8")
    return sheet


def show_in_docs(taken: list[Path]) -> None:
    """Those that the documentation shows, as much of them as a window does."""
    for one in taken:
        if one.stem in SHOWN:
            with Image.open(one) as whole:
                seen = whole.crop((0, 0, whole.width, min(whole.height, SHOWN_PX)))
                seen.save(IMAGES / SHOWN[one.stem], optimize=True)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="Screenshots of every page.")
    parser.add_argument("--url", default="", help="dashboards that run already; a stage is built where none are named")
    parser.add_argument("--path", default="", help="the one page to take there")
    parser.add_argument("--only", default="", help="pages whose name contains this")
    parser.add_argument("--docs", action="store_true", help="put those that the documentation shows into docs/images")
    given = parser.parse_args()
    if given.url:
        with browser() as chromium, looking(chromium, WINDOWS[0], "light") as page:
            place = Place("page", given.path, has_chart=False)
            taken = [shoot(page, given.url, place, WINDOWS[0], BUILD / "page.png")]
    else:
        cases = cases_here()
        if cases is None:
            sys.exit("screenshots: the labelled cells are not beside the checkout, in ../shared/cases")
        with tempfile.TemporaryDirectory() as directory, staged(Path(directory), cases) as stage:
            taken = shoot_all(stage, tuple(one for one in PLACES if given.only in one.name), BUILD)
    if given.docs:
        show_in_docs(taken)
    sys.stdout.write(f"{len(taken)} screenshots; look at them in {contact_sheet(taken, BUILD)}\n")


if __name__ == "__main__":
    main()
