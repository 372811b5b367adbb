"""The command line's settings of where and how long executions are kept, as flags, `TACHOGRAPH_*` and `.env` have them."""

from pathlib import Path
from typing import Any

from platformdirs import user_data_path
from pydantic import ByteSize, Field
from pydantic_settings import BaseSettings


class StoreSettings(BaseSettings):
    """A part of the settings of every command."""

    data_dir: Path = Field(user_data_path("tachograph"), description="Where the embedded store and the logs lie.")
    clickhouse_url: str = Field(
        "",
        repr=False,
        description="A ClickHouse server, http://user:password@host:8123/database; empty is the embedded one.",
    )
    clickhouse_cluster: str = Field(
        "", description="The server's cluster that holds the schema, as its remote_servers names it; empty is one host."
    )
    spool_bytes_max: ByteSize = Field(
        ByteSize(10 * 1024**3),
        ge=0,
        description="Bytes of requests that may wait for ClickHouse; beyond, senders are told to come back. 0: no bound.",
    )
    disk_free_bytes_min: ByteSize = Field(
        ByteSize(1024**3),
        ge=0,
        description="Bytes of the data directory's disk that accepted requests leave free. 0: none.",
    )
    store_bytes_max: ByteSize = Field(
        ByteSize(0),
        ge=0,
        description="Bytes of the embedded store beyond which its oldest days of executions are dropped. 0: no bound.",
    )
    retention: str = Field(
        "", description="How many days tables keep their rows, TABLE=DAYS, separated by commas; others as they are."
    )


def shown_default(value: Any) -> str:
    """A setting's default as the help shows it, and as it may be written."""
    if value is None or value == "":
        return "none"
    return str(value).lower() if isinstance(value, bool) else str(value)
