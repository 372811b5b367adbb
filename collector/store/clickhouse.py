"""Opening the store: ClickHouse embedded in this process, or a server by its URL. Both give one client class."""

import re
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit, urlunsplit
from xml.sax.saxutils import escape

import clickhouse_connect
from clickhouse_connect.driver.client import Client
from clickhouse_connect.driver.exceptions import ClickHouseError
from clickhouse_connect.driver.httpclient import HttpClient
from urllib3 import Timeout

from collector.data_dir import NO_ROOM
from collector.errors import CollectorError
from engine_hooks.first_answer import FIRST_ANSWER_S, waited_in_vain_s

DATABASE = "tachograph"
"""Where the schema lives unless a URL names another database."""

DEFAULT_PORTS: Final = {"http": 8123, "https": 8443}
"""ClickHouse's own, over HTTP."""


BACKUP_DISK = "backups"
"""The one disk that the engine may write backups to: a directory of links, each there for one backup."""

# A table that lets go of a hundred parts at once would start as many threads for it, which stay, and keep memory: 40 MB
# (docs/decisions/0009). What a look for spans stored before has found of a part is remembered in 8 MiB, not 100.
# A column of a part that is written has a buffer of 64 KiB, not of 1 MiB and more: for 20 codecs or 70 files at once that was 25 MB
# in each insert, and up to 190 MB in each merge of rollups that have grown beyond 10 MB. What is stored is as small. A merge has
# 1,024 rows in its hands, not 8,192: of a rollup's states that is 12 MB instead of 30, and takes no longer.
# What a merge has replaced is kept for a minute (the embedded engine's own default is not at all), because a merge that a full disk
# damaged is told from it (collector/store/damaged_parts.py), and then let go of every 5 to 10 s: 27 KB a part. By default each table
# waits until it has 300 of those, or for 5 minutes, so that in all there were up to 1,200, which came and went in waves. So that
# its sources are not gone before it is on disk, a merge of 1 MiB and more is synced.
# A merge makes no statistics of every column: whoever asks loads those of each part, 4 KB a column, and they stay with the part.
# How large the tables of past queries were is remembered of 1,000 queries, not of 10,000: the judge asks for other windows each time.
# Every right but those to reach out of the engine: no FILE, URL, REMOTE, S3 or other SOURCES, no CLUSTER. So neither
# a reader nor a mistake of ours makes the store open a file or a connection.
_CONFIG = """<clickhouse>
    <users_config>{config}</users_config>
    <storage_configuration><disks><{disk}><type>local</type><path>{links}/</path></{disk}></disks></storage_configuration>
    <merge_tree>
        <concurrent_part_removal_threshold>1000000</concurrent_part_removal_threshold>
        <max_compress_block_size>65536</max_compress_block_size>
        <merge_max_block_size>1024</merge_max_block_size>
        <old_parts_lifetime>60</old_parts_lifetime>
        <cleanup_delay_period>5</cleanup_delay_period>
        <cleanup_delay_period_random_add>0</cleanup_delay_period_random_add>
        <max_cleanup_delay_period>10</max_cleanup_delay_period>
        <min_compressed_bytes_to_fsync_after_merge>1048576</min_compressed_bytes_to_fsync_after_merge>
        <auto_statistics_types></auto_statistics_types>
    </merge_tree>
    <query_condition_cache_size>8388608</query_condition_cache_size>
    <max_entries_for_hash_table_stats>1000</max_entries_for_hash_table_stats>
    <backups><allowed_disk>{disk}</allowed_disk></backups>
    <profiles><default/></profiles>
    <quotas><default/></quotas>
    <users>
        <default>
            <password/>
            <networks><ip>::/0</ip></networks>
            <profile>default</profile>
            <quota>default</quota>
            <grants>
                <query>GRANT CHECK, SHOW, SELECT, INSERT, ALTER, CREATE, DROP, UNDROP TABLE, TRUNCATE, OPTIMIZE, BACKUP, KILL QUERY, SYSTEM, dictGet ON *.*</query>
                <query>GRANT READ, WRITE ON DISK</query>
            </grants>
        </default>
    </users>
</clickhouse>
"""
# The driver tells a connection that failed by all the calls it went through, and at last why.
_CAUSE = re.compile(r"\(Caused by \w+\((.+?)\)\)(?: executing HTTP request|$)")
_PLACE = re.compile(r"^HTTPS?Connection(?:Pool)?\(host=.*?\): ")
_CONNECT_S: Final = 10
_STATEMENT_S: Final = 300
_LINKS = "backup-links"
_IN_CONNECTION_STRING = re.compile(r"[?&%#+]")


class StoreError(CollectorError):
    """The store cannot be opened or reached."""


class StoreAwayError(StoreError):
    """No ClickHouse answers at the URL."""

    exit_code = 3


class WrongSettingError(StoreError):
    """What names the store is no URL of one, or does not go together."""

    exit_code = 2


def open_store(data_dir: Path, database: str = DATABASE) -> Client:
    """Open the embedded ClickHouse on a directory, made if missing, and the database in it.

    One process owns a directory at a time, and one process opens one directory at a time. Any
    number of clients may be open on it; each carries its own session and runs one query at a time.

    Raises:
        WrongSettingError: it cannot be written, or its name has characters that the engine cannot open.
        StoreError: another process holds the directory, or the disk is full.
    """
    path = engine_path(data_dir)
    check_engine_path(data_dir)
    try:
        path.mkdir(parents=True, exist_ok=True)
        options = {"config-file": _configuration(path)}
        open_client = partial(clickhouse_connect.get_client, interface="chdb", path=str(path), chdb_options=options)
        with open_client() as client:
            client.command("CREATE DATABASE IF NOT EXISTS {name:Identifier}", parameters={"name": database})
            return open_client(database=database)
    except OSError as error:
        kind = StoreError if error.errno in NO_ROOM else WrongSettingError
        raise kind(f"{path} cannot be written ({error.strerror}): name another --data-dir") from error
    except ClickHouseError as error:
        if "EmbeddedServer" in str(error):
            raise StoreError(
                f"{path} is held by another process (a collector that still runs?): stop it, or name another --data-dir"
            ) from error
        raise StoreError(f"{path} cannot be opened: {first_line(error)}") from error


def connection_string(data_dir: Path) -> str:
    """What the engine of `open_store` is opened with by those who bring no client of clickhouse-connect.

    The engine compares these literally: every opening in one process has to spell it alike.
    """
    path = engine_path(data_dir)
    return f"{path}?config-file={_configuration(path)}"


def engine_path(data_dir: Path) -> Path:
    """Where below the data directory the embedded engine keeps its files."""
    return data_dir.resolve() / "clickhouse"


def check_engine_path(data_dir: Path) -> None:
    """See that the embedded engine can be opened on a directory, as far as its name goes.

    Raises:
        WrongSettingError: it cannot.
    """
    path = engine_path(data_dir)
    if _IN_CONNECTION_STRING.search(str(path)):
        raise WrongSettingError(
            f"{path} has one of ? & % # + in it, which the engine cannot open: name another --data-dir"
        )


def backup_links(data_dir: Path) -> Path:
    """Where below the data directory the links are that backups go through."""
    return engine_path(data_dir).with_name(_LINKS)


def _configuration(path: Path) -> str:
    """Write the engine's configuration beside its files, and name it."""
    config = path.with_suffix(".xml")
    links = escape(str(path.with_name(_LINKS)))
    text = _CONFIG.format(config=escape(str(config)), disk=BACKUP_DISK, links=links)
    if not config.exists() or config.read_text() != text:
        config.write_text(text)
    return str(config)


def connect(url: str) -> Client:
    """Reach a ClickHouse server at `http(s)://user:password@host:port/database`; a missing database is made.

    The port defaults to ClickHouse's (8123, and 8443 with https), the database to `tachograph`.

    Raises:
        WrongSettingError: the URL is not one.
        StoreAwayError: the server does not answer, or nothing within 10 s.
        StoreError: it refuses.
    """
    server, database = split_url(url)
    try:
        with ExitStack() as opening:
            client = opening.enter_context(client_of(server))
            client.command("CREATE DATABASE IF NOT EXISTS {name:Identifier}", parameters={"name": database})
            client.database = database
            opening.pop_all()
            return client
    except ClickHouseError as error:
        kind = StoreError if _answered(error) else StoreAwayError
        raise kind(f"ClickHouse at {without_password(url)} {_said_of_writing(error)}") from error


def client_of(server: str, statement_s: float = _STATEMENT_S, **options: Any) -> HttpClient:
    """A client of a server, which has answered what the driver asks of every server as it opens a client.

    Those questions are small: a server that is busy answers them in time, one that hangs does not. A statement may well take
    minutes, and a server that works on one sends nothing meanwhile.

    Args:
        server: Its URL. The driver would go by the port in place of the scheme, and speak https on 443 and 8443 only.
        statement_s: How long a statement may be without an answer, in s.
        options: The driver's.

    Raises:
        ClickHouseError: it does not answer, or nothing within 10 s, or refuses.
    """
    interface = urlsplit(server).scheme
    client = clickhouse_connect.get_client(
        dsn=server, interface=interface, connect_timeout=_CONNECT_S, send_receive_timeout=FIRST_ANSWER_S, **options
    )
    assert isinstance(client, HttpClient)  # noqa: S101 # the only kind for such a URL
    client.timeout = Timeout(connect=_CONNECT_S, read=statement_s)
    return client


def _answered(error: ClickHouseError) -> bool:
    return getattr(error, "code", None) is not None


def said(error: ClickHouseError) -> str:
    """What a server did that does not answer as it should, to go on with after its name."""
    if (waited_s := waited_in_vain_s(str(error))) is not None:
        return f"did not answer within {waited_s:g} s"
    return f"{'refuses' if _answered(error) else 'did not answer'}: {first_line(error)}"


def _said_of_writing(error: ClickHouseError) -> str:
    """The same, and what to do where that is known."""
    if "READONLY" in str(error):
        return (
            "only lets you read: a collector's own endpoint does, and its collector keeps that store itself, so leave the "
            "URL out; on a server of yours, name a user who may write"
        )
    return said(error)


def split_url(url: str) -> tuple[str, str]:
    """The URL of a server without its database, and the database.

    Raises:
        WrongSettingError: not a URL of that form, or one that asks for anything but a file of certificates after `?`.
    """
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        scheme, mark, rest = url.rpartition("://")
        shown = f"{scheme}{mark}{rest.rpartition('@')[2]}"
        raise WrongSettingError(f"{shown!r} is no ClickHouse URL: give http(s)://user:password@host:port/database")
    if foreign := parse_qs(parts.query, keep_blank_values=True).keys() - {"ca_cert"}:
        raise WrongSettingError(
            f"{without_password(url)}: ClickHouse URLs take ?ca_cert=FILE only, not {', '.join(sorted(foreign))}"
        )
    return urlunsplit(parts._replace(path="")), parts.path.strip("/") or DATABASE


def place_of(url: str) -> str:
    """Which database of which server a URL names, whoever comes in by it: two URLs of one store give the same.

    Raises:
        WrongSettingError: not a URL of a server.
    """
    server, database = split_url(url)
    parts = urlsplit(server)
    port = parts.port or DEFAULT_PORTS[parts.scheme]
    return f"{parts.scheme}://{parts.hostname}:{port}/{database}"


def without_password(url: str) -> str:
    """The URL as it may be shown."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=f"{parts.username}@{host}" if parts.username else host))


def first_line(error: Exception) -> str:
    """What an error says, in one line; of a connection that failed, only why."""
    line = next(iter(str(error).strip().splitlines()), type(error).__name__)
    cause = _CAUSE.search(line)
    return _PLACE.sub("", cause[1].strip("\"'")) if cause else line
