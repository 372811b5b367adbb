"""Opening the store: ClickHouse embedded in this process, or a server by its URL. Both give one client class."""

from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import clickhouse_connect
from clickhouse_connect.driver.client import Client
from clickhouse_connect.driver.exceptions import ClickHouseError

from collector.errors import CollectorError

DATABASE = "tachograph"
"""Where the schema lives unless a URL names another database."""


class StoreError(CollectorError):
    """The store cannot be opened or reached."""


def open_store(data_dir: Path, database: str = DATABASE) -> Client:
    """Open the embedded ClickHouse on a directory, made if missing, and the database in it.

    One process owns a directory at a time, and one process opens one directory at a time. Any
    number of clients may be open on it; each carries its own session and runs one query at a time.

    Raises:
        StoreError: another process holds the directory, or it cannot be written.
    """
    path = engine_path(data_dir)
    try:
        path.mkdir(parents=True, exist_ok=True)
        with clickhouse_connect.get_client(dsn=f"chdb://{path}") as client:
            client.command("CREATE DATABASE IF NOT EXISTS {name:Identifier}", parameters={"name": database})
            return clickhouse_connect.get_client(dsn=f"chdb://{path}", database=database)
    except OSError as error:
        raise StoreError(f"{path} cannot be written ({error.strerror}): name another --data-dir") from error
    except ClickHouseError as error:
        if "EmbeddedServer" in str(error):
            raise StoreError(
                f"{path} is held by another process (a collector that still runs?): stop it, or name another --data-dir"
            ) from error
        raise StoreError(f"{path} cannot be opened: {first_line(error)}") from error


def engine_path(data_dir: Path) -> Path:
    """Where below the data directory the embedded engine keeps its files. The engine compares paths literally."""
    return data_dir.resolve() / "clickhouse"


def connect(url: str) -> Client:
    """Reach a ClickHouse server at `http(s)://user:password@host:port/database`; a missing database is made.

    The port defaults to ClickHouse's (8123, and 8443 with https), the database to `tachograph`.

    Raises:
        StoreError: the URL is not one, or the server cannot be reached or refuses.
    """
    server, database = split_url(url)
    try:
        with clickhouse_connect.get_client(dsn=server) as client:
            client.command("CREATE DATABASE IF NOT EXISTS {name:Identifier}", parameters={"name": database})
        return clickhouse_connect.get_client(dsn=server, database=database)
    except ClickHouseError as error:
        raise StoreError(f"ClickHouse at {without_password(url)} did not answer: {first_line(error)}") from error


def split_url(url: str) -> tuple[str, str]:
    """The URL of a server without its database, and the database.

    Raises:
        StoreError: not a URL of that form.
    """
    parts = urlsplit(url)
    try:
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise StoreError(f"{url!r} is no ClickHouse URL: give http(s)://user:password@host:port/database")
    return urlunsplit(parts._replace(path="")), parts.path.strip("/") or DATABASE


def without_password(url: str) -> str:
    """The URL as it may be shown."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=f"{parts.username}@{host}" if parts.username else host))


def first_line(error: Exception) -> str:
    """What an error says, in one line."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
