"""Where the pages read: `tachograph dashboard` hands it over by the environment."""

import os

URL_VARIABLE = "TACHOGRAPH_CLICKHOUSE_URL"
DEFAULT_URL = "http://127.0.0.1:8123/tachograph"
COLLECTOR_VARIABLE = "TACHOGRAPH_COLLECTOR_URL"
DEFAULT_COLLECTOR = "http://127.0.0.1:4318"


def clickhouse_url() -> str:
    """The ClickHouse handed over, else the embedded store."""
    return os.environ.get(URL_VARIABLE) or DEFAULT_URL


def collector_url() -> str:
    """The collector handed over, else the one here; it may bear its readers' user and password."""
    return os.environ.get(COLLECTOR_VARIABLE) or DEFAULT_COLLECTOR
