"""Putting a backup back into a data directory that holds no store."""

import shutil
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Final, NamedTuple

from clickhouse_connect.driver.client import Client
from clickhouse_connect.driver.exceptions import ClickHouseError

from collector.backup.making import linked
from collector.backup.manifest import SPOOL, STORE, BackupError, Contents, Manifest, contents_of
from collector.clickhouse import BACKUP_DISK, engine_path, first_line, open_store
from collector.spool.database import hold, spool_file

_APART: Final = "restoring"


class PutBack(NamedTuple):
    """A backup that was put back and looked over."""

    made_at: str
    rows: dict[str, int]
    """By table; the same as when it was made."""
    waiting_requests: int
    """Requests in the spool; the collector stores them at its next start."""


def put_back(directory: Path, data_dir: Path) -> PutBack:
    """Restore a backup, and compare every table with what the backup says of it.

    The store is built beside its place, and moved there whole: an interrupted restore leaves no store at all.

    Raises:
        BackupError: it is no whole backup, is of another version, or differs from what it says; or the data
            directory holds a store or a spool already.
        SpoolError: a collector runs there.
    """
    manifest = Manifest.read(directory)
    store, spool = engine_path(data_dir), spool_file(data_dir)
    for there in (store, spool):
        if there.exists():
            raise BackupError(f"{there} is there already: name a --data-dir without a store")
    with hold(spool):
        apart = data_dir / _APART
        try:
            shutil.rmtree(apart, ignore_errors=True)
            _restore(directory, apart, manifest)
            if (directory / SPOOL).exists():
                shutil.copyfile(directory / SPOOL, spool.with_suffix(".restoring"))
                spool.with_suffix(".restoring").rename(spool)
            engine_path(apart).rename(store)
        except OSError as error:
            raise BackupError(f"{data_dir} cannot be written ({error.strerror or error})") from error
        finally:
            shutil.rmtree(apart, ignore_errors=True)
    return PutBack(
        manifest.made_at, {name: one.rows for name, one in manifest.tables.items()}, manifest.waiting_requests
    )


def _restore(directory: Path, apart: Path, manifest: Manifest) -> None:
    with closing(open_store(apart)) as client, linked(apart, directory) as link:
        try:
            restore = f"RESTORE DATABASE {client.database} FROM Disk('{BACKUP_DISK}', '{link}/{STORE}')"
            client.command(f"{restore} SETTINGS structure_only = 1")
            # Before there is anything to merge: then parts are those of the backup.
            client.command("SYSTEM STOP MERGES")
            client.command(restore)
            _check(client, manifest.tables)
        except ClickHouseError as error:
            raise BackupError(f"{directory} cannot be put back: {first_line(error)}") from error


def _check(client: Client, wanted: Mapping[str, Contents]) -> None:
    """Compare rows and checksums, and read every part against its own."""
    found = contents_of(client)
    for table, contents in wanted.items():
        there = found.get(table, Contents(0, 0, ""))
        if (there.rows, there.checksum) != (contents.rows, contents.checksum):
            raise BackupError(
                f"{table} came back with {there.rows:,} rows, and the backup says {contents.rows:,}: it is damaged"
            )
        checked = client.command(
            "CHECK TABLE {table:Identifier} SETTINGS check_query_single_value_result = 1", parameters={"table": table}
        )
        if str(checked) != "1":
            raise BackupError(f"{table} is damaged: its parts differ from their own checksums")
