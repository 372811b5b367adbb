"""Where the pages are: their files, for Streamlit's own links, and their addresses, for everyone else's."""

from pathlib import Path
from urllib.parse import urlencode

PAGES = Path(__file__).parent / "pages"
FLEET_PAGE = str(PAGES / "fleet.py")
CELL_PAGE = str(PAGES / "cell.py")
GRAPHS_PAGE = str(PAGES / "graphs.py")
COMPARE_PAGE = str(PAGES / "compare.py")
WHAT_IF_PAGE = str(PAGES / "what_if.py")
ALERTS_PAGE = str(PAGES / "alerts.py")
SQL_PAGE = str(PAGES / "sql.py")
HEALTH_PAGE = str(PAGES / "health.py")


def cell_parameters(instance: str, cell: str) -> dict[str, str]:
    """The query parameters that name a cell."""
    return {"engine": instance, "cell": cell}


def cell_address(instance: str, cell: str) -> str:
    """The Cell page's address for one cell, relative to the dashboards' root."""
    return "cell?" + urlencode(cell_parameters(instance, cell))


def graphs_parameters(host: str) -> dict[str, str]:
    """The query parameters of the Graphs page for one host, in all stored time."""
    return {"host": host, "range": "all"} if host else {"range": "all"}
