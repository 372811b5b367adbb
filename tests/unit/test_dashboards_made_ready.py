"""What is loaded before anyone looks: all that pages import, and none of it is looked through again."""

import gc
import subprocess
import sys
from pathlib import Path

from dashboards.commands import APP

PAGES = Path(__file__).parents[2] / "dashboards" / "pages"
ENTERED = """
import asyncio, gc, logging, re, sys
from pathlib import Path

logging.disable()  # caches say that Streamlit does not run
from dashboards.app.made_ready import made_ready

async def enter():
    async with made_ready(None):
        return gc.get_freeze_count()

assert asyncio.run(enter()) > 100_000
wanted = [name for page in Path(sys.argv[1]).glob("*.py") for name in re.findall(r"^from (\\S+) import", page.read_text(), re.M)]
assert "queries.compare.markdown" in wanted
assert set(wanted) <= set(sys.modules), set(wanted) - set(sys.modules)
"""


def test_pages_find_all_that_they_import() -> None:
    """In a process of its own: what is set apart stays so."""
    subprocess.run([sys.executable, "-c", ENTERED, str(PAGES)], check=True, cwd=APP.parents[2], timeout=300)


def test_nothing_is_set_apart_by_an_import() -> None:
    assert gc.get_freeze_count() == 0
