"""Which ClickHouse the pages read: `tachograph dashboard` hands it over by the environment."""

import os

URL_VARIABLE = "TACHOGRAPH_CLICKHOUSE_URL"
DEFAULT_URL = "http://127.0.0.1:8123/tachograph"


def clickhouse_url() -> str:
    """The URL handed over, else that of the embedded store."""
    return os.environ.get(URL_VARIABLE) or DEFAULT_URL
