"""Where the pages read: `tachograph dashboard` hands it over by the environment."""

import os
from pathlib import Path

from platformdirs import user_data_path

URL_VARIABLE = "TACHOGRAPH_CLICKHOUSE_URL"
DEFAULT_URL = "http://127.0.0.1:8123/tachograph"
COLLECTOR_VARIABLE = "TACHOGRAPH_COLLECTOR_URL"
DEFAULT_COLLECTOR = "http://127.0.0.1:4318"
DATA_DIR_VARIABLE = "TACHOGRAPH_DATA_DIR"
ALERTMANAGER_VARIABLE = "TACHOGRAPH_ALERTMANAGER_URLS"
RULES_VARIABLE = "TACHOGRAPH_ALERT_RULES"


def clickhouse_url() -> str:
    """The ClickHouse handed over, else the embedded store."""
    return os.environ.get(URL_VARIABLE) or DEFAULT_URL


def collector_url() -> str:
    """The collector handed over, else the one here; it may bear its readers' user and password."""
    return os.environ.get(COLLECTOR_VARIABLE) or DEFAULT_COLLECTOR


def data_dir() -> Path:
    """The data directory handed over, else the usual one: the evaluator of alerts keeps their state there."""
    return Path(os.environ.get(DATA_DIR_VARIABLE) or user_data_path("tachograph"))


def alert_rules() -> Path | None:
    """The directory of the user's own alert rules, if it was handed over."""
    directory = os.environ.get(RULES_VARIABLE)
    return Path(directory) if directory else None


def alertmanager_urls() -> str:
    """The Alertmanagers handed over, which keep silences; '' is none."""
    return os.environ.get(ALERTMANAGER_VARIABLE, "")
