"""What every page needs is loaded before anyone looks, and is no longer searched for what can be thrown away.

Streamlit has Python look through everything that it holds after each run of a page (`runner.postScriptGC`): 0.1 s of
one core, at each click and each tick of each viewer, with the page's last changes waiting behind it. Nearly all that
is looked through are the libraries, which stay. They are set apart (`gc.freeze`); what a run leaves is still found.
"""

import ast
import gc
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import Final

from dashboards.charts.fleet_grid import ROOMY, Shown, template

PAGES: Final = Path(__file__).parents[1] / "pages"


@asynccontextmanager
async def made_ready(_app: object) -> AsyncIterator[None]:
    """The lifespan of what Streamlit serves, entered once Streamlit's own runtime is there.

    Raises:
        ImportError: something that the pages need is not installed.
    """
    for module in imported(PAGES):
        import_module(module)
    # The first chart: Altair reads its schema with it.
    template(ROOMY, Shown(has_losses=True), has_notes=False)
    gc.collect()
    gc.freeze()
    yield


def imported(pages: Path) -> Iterator[str]:
    """The modules that the pages import. They are scripts, which Streamlit runs: nobody else can import them."""
    for page in sorted(pages.glob("*.py")):
        for node in ast.walk(ast.parse(page.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                yield node.module
