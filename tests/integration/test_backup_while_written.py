"""A backup of a store that changes while it is copied: what it says of itself is what is in it, and it comes back."""

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from clickhouse_connect.driver.client import Client

from collector.backup import putting_back
from collector.backup.making import Source, make_backup
from collector.backup.manifest import BackupError, Manifest
from collector.store.clickhouse import open_store
from tests.fixtures.databases import SERVER_URL

pytestmark = pytest.mark.skipif(bool(SERVER_URL), reason="a server is backed up by its own BACKUP")

AGGREGATED = "cell_samples"
LATEST = datetime.now(UTC).date()
ONCE_MORE = {"insert_deduplicate": 0, "deduplicate_insert": "disable"}


def insert(client: Client, day: int = 0) -> None:
    client.command(
        "INSERT INTO {table:Identifier} (received_on, service_instance_id, cell) SELECT {received_on:Date}, 'engine', 1",
        parameters={"table": AGGREGATED, "received_on": LATEST - timedelta(days=day)},
        settings=ONCE_MORE,
    )


def merge(client: Client) -> None:
    """Rows with one key become one, as in a merge that was under way when merges were stopped."""
    client.command(f"SYSTEM START MERGES {AGGREGATED}")
    client.command(f"OPTIMIZE TABLE {AGGREGATED} FINAL")
    client.command(f"SYSTEM STOP MERGES {AGGREGATED}")


def drop(client: Client) -> None:
    client.command(f"ALTER TABLE {AGGREGATED} DROP PARTITION ID '{partitions(client)[0]}'")


def empty(client: Client) -> None:
    """A day whose every row is deleted leaves a part without rows for a while."""
    client.command(f"SYSTEM START MERGES {AGGREGATED}")
    client.command(f"ALTER TABLE {AGGREGATED} DELETE WHERE received_on < '{LATEST}'", settings={"mutations_sync": 2})
    client.command(f"SYSTEM STOP MERGES {AGGREGATED}")


def partitions(client: Client) -> list[str]:
    found = client.query(
        "SELECT DISTINCT partition_id FROM system.parts"
        " WHERE active AND database = currentDatabase() AND table = {table:String} ORDER BY partition_id",
        parameters={"table": AGGREGATED},
    )
    return [row[0] for row in found.result_rows]


class Changing:
    """A client whose store is changed just before it is copied, or just after."""

    def __init__(self, client: Client, before: Callable[[Client], None], after: Callable[[Client], None]) -> None:
        self._client, self._before, self._after = client, before, after

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def command(self, statement: str, *arguments: Any, **named: Any) -> Any:
        copies = statement.startswith("BACKUP")
        if copies:
            self._before(self._client)
        answer = self._client.command(statement, *arguments, **named)
        if copies:
            self._after(self._client)
        return answer


def nothing(_: Client) -> None:
    pass


def rows_of(client: Client) -> dict[str, int]:
    """Rows of each table, as a reader sees them before anything is merged."""
    tables = client.query(
        "SELECT name FROM system.tables WHERE database = currentDatabase() AND engine LIKE '%MergeTree'"
    ).result_rows
    count = "SELECT count() FROM {table:Identifier}"
    return {name: int(str(client.command(count, parameters={"table": name}))) for (name,) in tables}


@pytest.fixture
def restored(clickhouse: Client, data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Path], None]]:
    """Puts a backup back in the place of the database that it was made of, as `restore` does in an engine of its own."""
    name = str(clickhouse.database)
    monkeypatch.setattr(putting_back, "open_store", lambda _: open_store(data_dir, name))

    def restore(backup: Path) -> None:
        clickhouse.command(f"DROP DATABASE {name} SYNC")
        clickhouse.command(f"CREATE DATABASE {name}")
        putting_back._restore(backup, data_dir, Manifest.read(backup))

    yield restore
    clickhouse.command("SYSTEM START MERGES")


@pytest.fixture
def filled(clickhouse: Client) -> Client:
    """Two days, each of some parts, whose rows are one once they are merged; two parts that are alike to the byte."""
    clickhouse.command(f"SYSTEM STOP MERGES {AGGREGATED}")
    for day in (0, 0, 1, 1):
        insert(clickhouse, day)
    return clickhouse


@pytest.fixture
def source(data_dir: Path, tmp_path: Path) -> Source:
    """The engine of the tests, without a spool."""
    return Source(data_dir, tmp_path / "spool.sqlite", nullcontext)


@pytest.mark.parametrize(
    ("changes", "rows"),
    [
        pytest.param((insert, nothing), 5, id="a row before"),
        pytest.param((nothing, insert), 4, id="a row after"),
        pytest.param((merge, nothing), 2, id="a merge before"),
        pytest.param((nothing, merge), 4, id="a merge after"),
        pytest.param((drop, nothing), 2, id="a day dropped before"),
        pytest.param((nothing, drop), 4, id="a day dropped after"),
        pytest.param((empty, nothing), 2, id="a day emptied before"),
    ],
)
def test_whatever_changes_meanwhile_it_says_what_is_in_it_and_comes_back(
    filled: Client,
    source: Source,
    restored: Callable[[Path], None],
    changes: tuple[Callable[[Client], None], Callable[[Client], None]],
    rows: int,
) -> None:
    backup = source.spool.with_name("backup")
    made = make_backup(Changing(filled, *changes), source, backup)  # type: ignore[arg-type]
    assert made.rows[AGGREGATED] == rows
    restored(backup)
    assert {table: count for table, count in rows_of(filled).items() if count} == made.rows


@pytest.mark.parametrize("rows", [3, None], ids=["another count", "no count"])
def test_what_differs_from_what_it_says_is_refused(
    filled: Client, source: Source, restored: Callable[[Path], None], rows: int | None
) -> None:
    backup = source.spool.with_name("backup")
    make_backup(filled, source, backup)
    manifest = Manifest.read(backup)
    tables = {name: one for name, one in manifest.tables.items() if name != AGGREGATED}
    said = {} if rows is None else {AGGREGATED: manifest.tables[AGGREGATED]._replace(rows=rows)}
    manifest._replace(tables={**tables, **said}).write(backup)
    with pytest.raises(BackupError, match=f"{AGGREGATED} came back with 4 rows, and its manifest says {rows or 0}"):
        restored(backup)
