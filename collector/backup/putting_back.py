"""Putting a backup back into a data directory that holds no store."""

import errno
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

from clickhouse_connect.driver.client import Client
from clickhouse_connect.driver.exceptions import ClickHouseError
from rich.filesize import decimal as told_bytes

from collector.backup.making import linked
from collector.backup.manifest import (
    SPOOL,
    STORE,
    WHOLE_ONE,
    BackupError,
    Contents,
    Manifest,
    WrongPlaceError,
    contents_of,
    parts_of,
    sha256_of,
)
from collector.disk_space import NoSpaceError, free_bytes_in, telling_of_space
from collector.spool.database import SpoolError, check_whole, hold, spool_file
from collector.store.clickhouse import BACKUP_DISK, engine_path, first_line, open_store
from collector.store.migrations import all_schema_files, apply_schema
from engine_hooks.commands.counting import counted

_APART: Final = "restoring"
_SPARE_BYTES: Final = 16 * 1024**2
"""Beside what is in the backup: what the engine writes of its own."""
_NOT_ITS_FAULT: Final = ("NOT_ENOUGH_SPACE", "No space left", "MEMORY_LIMIT_EXCEEDED", "CANNOT_WRITE", "CANNOT_CREATE")
"""What ClickHouse says where this machine lacks something. Else it is the backup: nothing else goes into a restore."""
_MISSING: Final = ("FILE_DOESNT_EXIST", "NO_FILE_IN_DATA_PART", "BACKUP_NOT_FOUND", "BACKUP_ENTRY_NOT_FOUND")
_COMPARED: Final = "compared"
"""A database that is there for a moment: the schema as this version makes it."""
_VIEWS: Final = """
SELECT name, replaceAll(create_table_query, concat(currentDatabase(), '.'), '')
FROM system.tables WHERE database = currentDatabase() AND engine LIKE '%View'
"""
_NAME: Final = re.compile(r"\(([A-Z][A-Z_]{3,})\)")
"""ClickHouse's name of an error."""
_IN_TABLE: Final = re.compile(r"\btable [`'\"]?(?:\w+\.)?(\w+)|/data/\w+/(\w+)/")


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
        WrongPlaceError: the data directory holds a store or a spool already, or is the backup's own.
        BackupError: it is no whole backup, is of another version, or differs from what it says.
        NoSpaceError: it does not fit on the data directory's disk.
        SpoolError: a collector runs there.
    """
    _check_apart(directory.resolve(), data_dir.resolve())
    manifest = Manifest.read(directory)
    store, spool = engine_path(data_dir), spool_file(data_dir)
    for there in (store, spool):
        if there.exists():
            raise WrongPlaceError(f"{there} is there already: name a --data-dir without a store")
    with _left_as_it_was(spool), hold(spool), telling_of_space(data_dir, _SPARE_BYTES):
        # Only now: of a place that cannot be written, disks say that nothing is free.
        _check_space(directory, data_dir)
        apart = data_dir / _APART
        try:
            shutil.rmtree(apart, ignore_errors=True)
            apart.mkdir(parents=True)
            waiting = _restore_spool(directory, apart, manifest)
            _restore(directory, apart, manifest)
            if (apart / SPOOL).exists():
                (apart / SPOOL).rename(spool)
            engine_path(apart).rename(store)
        except OSError as error:
            if error.errno == errno.ENOSPC:
                raise
            raise BackupError(f"{data_dir} cannot be written ({error.strerror or error})") from error
        finally:
            shutil.rmtree(apart, ignore_errors=True)
    return PutBack(manifest.made_at, {name: one.rows for name, one in manifest.tables.items()}, waiting)


def _check_apart(directory: Path, data_dir: Path) -> None:
    """Refuse a data directory within the backup, which would be one no more, and a backup that would be cleared away."""
    if data_dir.is_relative_to(directory):
        raise WrongPlaceError(f"--data-dir {data_dir} is in the backup {directory} itself: name another --data-dir")
    if directory.is_relative_to(data_dir / _APART):
        raise WrongPlaceError(
            f"the backup {directory} is where a restore into {data_dir} does its work: move it, or name another --data-dir"
        )


def _check_space(directory: Path, data_dir: Path) -> None:
    wanted = sum(file.stat().st_size for file in directory.rglob("*") if file.is_file()) + _SPARE_BYTES
    if (free := free_bytes_in(data_dir)) < wanted:
        raise NoSpaceError(
            f"no space left in {data_dir} for the backup {directory}: it takes {told_bytes(wanted)}, and "
            f"{told_bytes(free)} are free; free some, or name another --data-dir"
        )


@contextmanager
def _left_as_it_was(spool: Path) -> Iterator[None]:
    """Where it fails within, the directories made for a spool go again."""
    missing = [place for place in (spool.parent, *spool.parent.parents) if not place.exists()]
    try:
        yield
    except BaseException:
        with suppress(OSError):
            if spool.parent in missing:
                (spool.parent / "lock").unlink(missing_ok=True)
            for place in missing:
                place.rmdir()
        raise


def _restore_spool(directory: Path, apart: Path, manifest: Manifest) -> int:
    """Copy the spool, read the copy to its end, and compare it with the manifest; the requests that wait in it."""
    copied = apart / SPOOL
    if not (directory / SPOOL).exists():
        if manifest.spool_sha256 or manifest.waiting_requests:
            raise BackupError(f"{directory} is damaged: its {SPOOL} is missing; put another backup back")
        return 0
    shutil.copyfile(directory / SPOOL, copied)
    if manifest.spool_sha256 not in ("", sha256_of(copied)):
        raise BackupError(
            f"{directory / SPOOL} is damaged: its checksum is not the manifest's; put another backup back"
        )
    try:
        waiting = check_whole(copied)
    except SpoolError as error:
        raise BackupError(f"{directory / SPOOL} is damaged, and was when the backup was made: {error}") from error
    if waiting != manifest.waiting_requests:
        raise BackupError(
            f"{directory / SPOOL} holds {counted(waiting, 'waiting request')}, and the backup says {manifest.waiting_requests:,}"
        )
    return waiting


def _restore(directory: Path, apart: Path, manifest: Manifest) -> None:
    with closing(open_store(apart)) as client, linked(apart, directory) as link:
        try:
            restore = f"RESTORE DATABASE {client.database} FROM Disk('{BACKUP_DISK}', '{link}/{STORE}')"
            client.command(f"{restore} SETTINGS structure_only = 1")
            # Before there is anything to merge: then parts are those of the backup.
            client.command("SYSTEM STOP MERGES")
            client.command(restore)
            _check(client, directory, manifest.tables)
            if not manifest.files:
                _check_views(client, directory, manifest.schema)
        except ClickHouseError as error:
            raise BackupError(_told(directory, error)) from error


def _told(directory: Path, error: ClickHouseError) -> str:
    """Which backup it is, what is wrong with it, and what to do."""
    text = str(error)
    if any(name in text for name in _NOT_ITS_FAULT):
        return f"the backup {directory} cannot be put back: {first_line(error)}"
    found = _IN_TABLE.search(text)
    where = f" of table {found[1] or found[2]}" if found else ""
    named = _NAME.findall(text)
    what = "is missing" if any(name in text for name in _MISSING) else "cannot be read"
    why = f" ({named[-1]})" if named else ""
    return f"the backup {directory} is damaged: a file{where} {what}{why}; {WHOLE_ONE}"


def _check(client: Client, directory: Path, wanted: Mapping[str, Contents]) -> None:
    """Compare rows and checksums, and read every part against its own."""
    found = contents_of(part for part in parts_of(client) if part.is_active)
    for table in sorted({*wanted, *found}):
        there, contents = (of.get(table, Contents(0, 0, "")) for of in (found, wanted))
        if there.rows != contents.rows or (there.rows and there.checksum != contents.checksum):
            raise BackupError(
                f"the backup {directory} is damaged: {table} came back with {counted(there.rows, 'row')}, and its manifest says "
                f"{contents.rows:,}{', with other content' if there.rows == contents.rows else ''}; {WHOLE_ONE}"
            )
        checked = client.command(
            "CHECK TABLE {table:Identifier} SETTINGS check_query_single_value_result = 1", parameters={"table": table}
        )
        if str(checked) != "1":
            raise BackupError(
                f"the backup {directory} is damaged: parts of {table} differ from their own checksums; {WHOLE_ONE}"
            )


def _check_views(client: Client, directory: Path, schema: Mapping[str, str]) -> None:
    """Compare every view with what this version's schema makes: for backups whose manifest has no checksums of them."""
    found = _views(client)
    database = client.database
    client.command(f"CREATE DATABASE {_COMPARED}")
    client.database = _COMPARED
    try:
        apply_schema(client, [file for file in all_schema_files() if file.name in schema])
        wanted = _views(client)
    finally:
        client.database = database
        client.command(f"DROP DATABASE {_COMPARED}")
    for view in sorted({*wanted, *found}):
        if found.get(view) != wanted.get(view):
            raise BackupError(f"the backup {directory} is damaged: view {view} is not this version's; {WHOLE_ONE}")


def _views(client: Client) -> dict[str, str]:
    """Every view's statement, by its name."""
    return {str(name): str(statement) for name, statement in client.query(_VIEWS).result_rows}
