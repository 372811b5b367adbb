"""Opening the store, in processes of its own: one process opens one embedded engine at a time."""

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from clickhouse_connect.driver.client import Client

from collector.store.clickhouse import (
    StoreError,
    WrongSettingError,
    connect,
    place_of,
    split_url,
    without_password,
)
from tests.fixtures.databases import SERVER_URL

HOLDER = """
import sys
from pathlib import Path
from collector.store.clickhouse import open_store
with open_store(Path(sys.argv[1])) as client:
    print(client.database, flush=True)
    sys.stdin.read()
"""
OPENER = """
import sys
from pathlib import Path
from collector.store.clickhouse import open_store
from collector.errors import CollectorError
try:
    with open_store(Path(sys.argv[1])) as client:
        client.command("CREATE TABLE IF NOT EXISTS t (x Int64) ENGINE = MergeTree ORDER BY x")
        client.insert("t", [[1]])
        print(client.query("SELECT count() FROM t").first_row[0])
except CollectorError as error:
    print(error)
"""
DROPPER = """
import sys
from pathlib import Path
from collector.store.clickhouse import open_store
with open_store(Path(sys.argv[1])) as client:
    client.command("CREATE TABLE t (x Int64) ENGINE = MergeTree PARTITION BY x ORDER BY x")
    client.command("INSERT INTO t SELECT number FROM numbers(130)", settings={"max_partitions_per_insert_block": 0})
    threads = "SELECT value FROM system.metrics WHERE metric = 'GlobalThread'"
    before = client.query(threads).first_row[0]
    client.command("DROP TABLE t SYNC")
    print(client.query(threads).first_row[0] - before)
    for name in ("query_condition_cache_size", "max_entries_for_hash_table_stats"):
        setting = "SELECT value FROM system.server_settings WHERE name = {name:String}"
        print(client.query(setting, parameters={"name": name}).first_row[0])
"""

MERGER = """
import sys
import time
from pathlib import Path
from collector.store.clickhouse import open_store
with open_store(Path(sys.argv[1])) as client:
    kept = "SELECT value FROM system.merge_tree_settings WHERE name = 'old_parts_lifetime'"
    print(client.query(kept).first_row[0])
    client.command("CREATE TABLE t (x Int64) ENGINE = MergeTree ORDER BY x SETTINGS old_parts_lifetime = 1")
    replaced = "SELECT count() FROM system.parts WHERE table = 't' AND NOT active"
    for _ in range(2):
        for n in range(3):
            client.command(f"INSERT INTO t VALUES ({n})")
        client.command("OPTIMIZE TABLE t FINAL")
        deadline = time.monotonic() + 60
        while client.query(replaced).first_row[0] and time.monotonic() < deadline:
            time.sleep(0.2)
    print(client.query(replaced).first_row[0], client.query("SELECT count() FROM t").first_row[0])
    client.command("CREATE TABLE large (x UInt64) ENGINE = MergeTree ORDER BY tuple()")
    for _ in range(2):
        client.command("INSERT INTO large SELECT rand64() FROM numbers(100000)")
    syncs = "SELECT sum(value) FROM system.events WHERE event = 'FileSync'"
    before = client.query(syncs).first_row[0]
    for table in ("t", "large"):
        client.command(f"OPTIMIZE TABLE {table} FINAL SETTINGS optimize_skip_merged_partitions = 0")
        print(client.query(syncs).first_row[0] > before)
"""


def opened(data_dir: Path, script: str = OPENER) -> str:
    done = subprocess.run(
        [sys.executable, "-c", script, str(data_dir)], capture_output=True, text=True, timeout=180, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@contextmanager
def holding(data_dir: Path) -> Iterator[None]:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(data_dir)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "tachograph\n"
        yield


def test_letting_go_of_many_parts_starts_no_threads_and_caches_have_a_bound(tmp_path: Path) -> None:
    """Without a word in the engine's configuration it would be 125 threads, for good."""
    threads, cache_bytes, queries = map(int, opened(tmp_path, DROPPER).split())
    assert threads < 20
    assert cache_bytes == 8 * 1024**2
    assert queries == 1_000


def test_parts_that_a_merge_has_replaced_are_let_go_of_within_seconds_of_their_minute_and_a_large_merge_is_synced(
    tmp_path: Path,
) -> None:
    """Without a word in the engine's configuration: after 30 s at first, then when there are 300, or after 5 minutes."""
    assert opened(tmp_path, MERGER) == "60\n0 6\nFalse\nTrue\n"


def test_what_was_stored_is_there_when_the_store_is_opened_again(tmp_path: Path) -> None:
    assert opened(tmp_path) == "1\n"
    assert opened(tmp_path) == "2\n"


def test_a_store_that_another_process_holds_is_one_clear_line(tmp_path: Path) -> None:
    with holding(tmp_path):
        said = opened(tmp_path)
    assert said == (
        f"{tmp_path}/clickhouse is held by another process (a collector that still runs?): "
        "stop it, or name another --data-dir\n"
    )
    assert opened(tmp_path) == "1\n"


def test_a_store_in_a_directory_with_spaces(tmp_path: Path) -> None:
    assert opened(tmp_path / "a b" / "Grüße & co".replace("& ", "")) == "1\n"


@pytest.mark.parametrize("mark", "?&%#+")
def test_a_directory_that_the_engine_cannot_name_is_one_clear_line(tmp_path: Path, mark: str) -> None:
    said = opened(tmp_path / f"a{mark}b")
    assert said.startswith(f"{tmp_path}/a{mark}b/clickhouse has one of ? & % # + in it")
    assert said.count("\n") == 1


def test_a_directory_that_cannot_be_made_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert opened(tmp_path / "file").endswith("(Not a directory): name another --data-dir\n")


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser can write anywhere")
def test_a_directory_that_cannot_be_written_is_one_clear_line(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    assert opened(tmp_path).endswith("(Permission denied): name another --data-dir\n")


@pytest.mark.skipif(bool(SERVER_URL), reason="a server keeps the logs its operator wants")
def test_the_engine_keeps_no_logs_of_its_own(clickhouse: Client) -> None:
    for _ in range(20):
        clickhouse.query("SELECT count() FROM graph_executions")
    kept = clickhouse.query("SELECT name, total_bytes FROM system.tables WHERE database = 'system' AND total_bytes > 0")
    assert not [name for name, _ in kept.result_rows if name.endswith("_log")]
    stored = clickhouse.query("SELECT count() FROM system.parts WHERE database = 'system'")
    assert stored.first_row == (0,)


@pytest.mark.skipif(bool(SERVER_URL), reason="a server's user has the rights its operator gives")
@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM file('/etc/hostname', 'LineAsString')",
        "SELECT * FROM url('http://127.0.0.1:9/', 'LineAsString')",
        "INSERT INTO FUNCTION file('/nowhere/x', 'TSV', 'x Int64') VALUES (1)",
        "CREATE TABLE outside (x Int64) ENGINE = URL('http://127.0.0.1:9/', 'TSV')",
    ],
)
def test_the_engine_has_no_right_to_reach_out(clickhouse: Client, statement: str) -> None:
    with pytest.raises(Exception, match="ACCESS_DENIED"):
        clickhouse.command(statement)


@pytest.mark.parametrize("url", ["", "localhost:8123", "chdb:///tmp/x", "http://", "http://host:port/db", "ftp://host"])
def test_what_is_no_url_of_a_server_is_one_clear_line(url: str) -> None:
    with pytest.raises(StoreError, match=r"is no ClickHouse URL: give http\(s\)://user:password@host:port/database"):
        connect(url)


def test_a_server_that_does_not_answer_is_one_clear_line_without_the_password() -> None:
    with pytest.raises(
        StoreError, match=r"^ClickHouse at http://reader@127\.0\.0\.1:9/fleet did not answer: "
    ) as error:
        connect("http://reader:secret@127.0.0.1:9/fleet")
    assert "secret" not in str(error.value)
    assert "\n" not in str(error.value)


def test_an_https_url_speaks_tls_on_every_port() -> None:
    """The password of whoever writes https is never sent without."""
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def hear() -> None:
            with suppress(OSError):
                while True:
                    taken, _ = listening.accept()
                    with taken:
                        heard.append(taken.recv(65536))

        hearing = threading.Thread(target=hear)
        hearing.start()
        with pytest.raises(StoreError, match="did not answer"):
            connect(f"https://reader:secret@127.0.0.1:{listening.getsockname()[1]}/fleet")
        listening.shutdown(socket.SHUT_RDWR)
        hearing.join()
    assert {first[:1] for first in heard} == {b"\x16"}  # A handshake of TLS.


@pytest.mark.parametrize(
    ("url", "server", "database"),
    [
        ("http://host", "http://host", "tachograph"),
        ("https://u:p@host:8443/fleet", "https://u:p@host:8443", "fleet"),
        ("http://[::1]:8123/", "http://[::1]:8123", "tachograph"),
    ],
)
def test_a_url_names_server_and_database(url: str, server: str, database: str) -> None:
    assert split_url(url) == (server, database)


def test_a_url_asks_for_certificates_and_nothing_else() -> None:
    assert split_url("https://h/d?ca_cert=/a.pem") == ("https://h?ca_cert=/a.pem", "d")
    with pytest.raises(WrongSettingError, match=r"u@h/d\?verify=no&x=: .* take \?ca_cert=FILE only, not verify, x$"):
        split_url("https://u:secret@h/d?verify=no&x=")


def test_a_url_is_shown_without_its_password() -> None:
    assert without_password("http://u:p@host:1/d") == "http://u@host:1/d"
    assert without_password("http://host:1/d") == "http://host:1/d"


@pytest.mark.parametrize(
    "url",
    ["http://h/fleet", "http://u:p@h:8123/fleet/", "http://H:8123/fleet"],
)
def test_urls_of_one_store_name_one_place(url: str) -> None:
    assert place_of(url) == "http://h:8123/fleet"
    assert place_of("https://u@h") == "https://h:8443/tachograph"


@pytest.mark.skipif(bool(SERVER_URL), reason="a server of yours lets its user write")
def test_a_server_that_refuses_did_answer(clickhouse_url: str) -> None:
    """The endpoint of a collector only reads; that is said, with what to do."""
    with pytest.raises(StoreError, match=r" only lets you read: .* leave the URL out"):
        connect(clickhouse_url)
