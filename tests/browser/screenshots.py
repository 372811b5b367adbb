"""Screenshots from a running page, for the README and for looking at.

python -m tests.browser.screenshots http://127.0.0.1:8501 docs/images/fleet.png
python -m tests.browser.screenshots http://127.0.0.1:8501 cell.png --path "cell?engine=…&cell=…" --scheme dark --whole
"""

import argparse
from pathlib import Path
from typing import Literal

from tests.browser.driven import browser, drawn

Scheme = Literal["light", "dark"]
SETTLED_MS = 1500
"""Charts fade in; a picture is taken once they stand, in ms."""


def screenshot(
    url: str,
    file: Path,
    *,
    path: str = "",
    scheme: Scheme = "light",
    width: int = 1440,
    height: int = 900,
    whole: bool = False,
    zone: str | None = None,
) -> Path:
    """Take one.

    Args:
        url: The dashboards.
        file: Where the PNG goes; folders are made.
        path: The page and its query, such as `?range=all`.
        scheme: The viewer's colour scheme.
        width: Of the window, in px.
        height: Of the window, in px.
        whole: As high as the page needs.
        zone: The viewer's time zone; None is this machine's.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    with browser() as chromium:
        context = chromium.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme, timezone_id=zone
        )
        page = context.new_page()
        page.goto(f"{url.rstrip('/')}/{path}")
        drawn(page).wait_for_timeout(SETTLED_MS)
        if whole:
            needed = page.evaluate("document.querySelector('[data-testid=stMain]').scrollHeight")
            page.set_viewport_size({"width": width, "height": max(height, int(needed))})
            page.wait_for_timeout(SETTLED_MS)
        page.screenshot(path=file)
    return file


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="A screenshot of a running page.")
    parser.add_argument("url")
    parser.add_argument("file", type=Path)
    parser.add_argument("--path", default="")
    parser.add_argument("--scheme", choices=("light", "dark"), default="light")
    parser.add_argument("--width", type=int, default=1440)
    parser.add_argument("--height", type=int, default=900)
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--zone")
    arguments = vars(parser.parse_args())
    screenshot(arguments.pop("url"), arguments.pop("file"), **arguments)


if __name__ == "__main__":
    main()
