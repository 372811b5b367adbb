"""Making a backup of the embedded store and its spool, both as of one moment."""

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from clickhouse_connect.driver.client import Client
from clickhouse_connect.driver.exceptions import ClickHouseError

from collector.backup.manifest import (
    SPOOL,
    STORE,
    BackupError,
    Contents,
    Manifest,
    WrongPlaceError,
    contents_of,
    files_of,
    parts_of,
    sha256_of,
)
from collector.spool.database import has_tables, is_damage, spool_error, spool_file
from collector.store.clickhouse import BACKUP_DISK, backup_links, engine_path, first_line

_UNFINISHED: Final = ".unfinished"
_MARKER: Final = "tachograph-backup.unfinished"
"""A file by which an unfinished backup is told from what somebody else put there."""


class Source(NamedTuple):
    """What a backup is made of."""

    data_dir: Path
    spool: Path
    resting: Callable[[], AbstractContextManager[object]]
    """Nothing moves from the spool into the store within."""


class Made(NamedTuple):
    """A backup that was made."""

    directory: str
    bytes: int
    """On disk."""
    rows: dict[str, int]
    """By table."""
    waiting_requests: int
    """Requests in the spool, which are stored once they are put back."""


def make_backup(client: Client, source: Source, to: Path) -> Made:
    """Back up the client's database and the spool. What comes in meanwhile waits in the spool, and is not part of it.

    Until it is complete it is called `….unfinished`; a later one takes the place of such a remainder of a kill. Nothing
    is left of a backup that fails.

    Raises:
        WrongPlaceError: the directory is there already, is the store's own, or is to be in none that is there.
        BackupError: it cannot be written, or the engine refuses.
        SpoolError: the spool is damaged.
    """
    if not to.is_absolute():
        raise WrongPlaceError(f"{to} is no absolute path")
    if to.exists():
        raise WrongPlaceError(f"{to} is there already: name a directory that is not")
    for own in (engine_path(source.data_dir), backup_links(source.data_dir), spool_file(source.data_dir).parent):
        if to.resolve().is_relative_to(own.resolve()):
            raise WrongPlaceError(
                f"{to} is in {own}, which the store itself is kept in: name a directory apart from it"
            )
    if not to.parent.is_dir():
        raise WrongPlaceError(f"{to} cannot be written: {to.parent} is no directory that is there; make it first")
    try:
        with _unfinished(to) as unfinished:
            with source.resting(), _merges_resting(client):
                manifest = _copy(client, source, unfinished)
            manifest.write(unfinished)
            _sync(unfinished)
            unfinished.rename(to)
            (to / _MARKER).unlink()
    except OSError as error:
        raise BackupError(f"{to} cannot be written ({error.strerror or error}){_left_of(to)}") from error
    except (ClickHouseError, sqlite3.Error) as error:
        raise BackupError(f"{to} cannot be written ({first_line(error)}){_left_of(to)}") from error
    size = sum(file.stat().st_size for file in to.rglob("*") if file.is_file())
    return Made(str(to), size, {name: table.rows for name, table in manifest.tables.items()}, manifest.waiting_requests)


@contextmanager
def _unfinished(to: Path) -> Iterator[Path]:
    """A directory of its own beside the backup's place, with a mark in it; removed where the backup fails.

    Raises:
        BackupError: something that is no remainder of a backup has its name.
    """
    unfinished = to.with_name(to.name + _UNFINISHED)
    if os.path.lexists(unfinished):
        if not _is_remainder(unfinished):
            raise WrongPlaceError(
                f"{unfinished} is there, and no unfinished backup: move it away, or name another place"
            )
        shutil.rmtree(unfinished)
    unfinished.mkdir(mode=0o700)
    try:
        (unfinished / _MARKER).touch()
        yield unfinished
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise


def _is_remainder(path: Path) -> bool:
    """Whether a backup was begun there: it has the mark, or nothing at all."""
    return path.is_dir() and not path.is_symlink() and ((path / _MARKER).is_file() or not any(path.iterdir()))


def _left_of(to: Path) -> str:
    """What a failed backup has left, for the user."""
    unfinished = to.with_name(to.name + _UNFINISHED)
    return f"; what is left of it is in {unfinished}" if unfinished.exists() else "; nothing is left of it"


def _copy(client: Client, source: Source, directory: Path) -> Manifest:
    waiting = _copy_spool(source.spool, directory / SPOOL)
    sha256 = sha256_of(directory / SPOOL) if (directory / SPOOL).exists() else ""
    tables = _copy_store(client, source.data_dir, directory)
    return Manifest.of(client, tables, waiting, sha256, files_of(directory))


def _copy_store(client: Client, data_dir: Path, directory: Path) -> dict[str, Contents]:
    """Copy the store. What is told of it is told of the parts that were copied, whatever became of them since.

    Raises:
        BackupError: a part that was copied is not known.
    """
    known = parts_of(client)
    with linked(data_dir, directory) as link:
        # A file for each name: else a part that is like another one has none, and is not seen.
        client.command(
            f"BACKUP DATABASE {client.database} TO Disk('{BACKUP_DISK}', '{link}/{STORE}') SETTINGS deduplicate_files = 0"
        )
    # One that was there before may be gone by now, and one may have come since: both were looked at.
    by_name = {(part.table, part.name): part for part in (*known, *parts_of(client))}
    copied = [
        (file.parents[1].name, file.parent.name)
        for file in (directory / STORE / "data" / str(client.database)).glob("*/*/checksums.txt")
    ]
    if strange := sorted(name for name in copied if name not in by_name):
        raise BackupError(f"{strange[0][0]} was changed while it was copied: make the backup again")
    return contents_of(by_name[name] for name in copied)


def _copy_spool(spool: Path, to: Path) -> int:
    """A copy as of one moment, though others write; the requests that wait in it.

    Raises:
        SpoolError: it is damaged.
    """
    if not spool.exists():
        return 0
    try:
        return _copied(spool, to)
    except sqlite3.Error as error:
        if is_damage(error):  # Else it is the copy that cannot be written.
            raise spool_error(spool, error) from error
        raise


def _copied(spool: Path, to: Path) -> int:
    with closing(sqlite3.connect(f"{spool.resolve().as_uri()}?mode=ro", uri=True)) as read:
        if not has_tables(read):
            return 0
        with closing(sqlite3.connect(to)) as written:
            read.backup(written)
            (waiting,) = written.execute("SELECT count(*) FROM requests").fetchone()
    return int(waiting)


@contextmanager
def linked(data_dir: Path, directory: Path) -> Iterator[str]:
    """A name by which the engine finds a directory wherever it is: its disk for backups has a fixed place."""
    links = backup_links(data_dir)
    links.mkdir(parents=True, exist_ok=True)
    link = links / f"link-{os.getpid()}"
    link.unlink(missing_ok=True)
    link.symlink_to(directory.resolve(), target_is_directory=True)
    try:
        yield link.name
    finally:
        link.unlink(missing_ok=True)


@contextmanager
def _merges_resting(client: Client) -> Iterator[None]:
    """Nothing is merged that is to be copied."""
    client.command("SYSTEM STOP MERGES")
    try:
        yield
    finally:
        client.command("SYSTEM START MERGES")


def _sync(directory: Path) -> None:
    """On disk, before it is called complete."""
    for path in (*directory.rglob("*"), directory):
        opened = os.open(path, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)
