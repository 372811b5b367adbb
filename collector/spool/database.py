"""The file under the spool: SQLite in WAL mode, held by one collector, read by whoever wants."""

import fcntl
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from importlib.resources import files
from pathlib import Path
from typing import IO, Final, NamedTuple

from collector.data_dir import NO_ROOM
from collector.errors import CollectorError

_PAGE_BYTES: Final = 16384
"""Requests are some hundred kilobytes: larger pages make shorter chains (170 MB/s against 115 with 4 KiB)."""
_CHECKPOINT_PAGES: Final = 1024
"""The log is carried into the file each 16 MiB."""
_BUSY_S: Final = 10.0
"""How long one process waits for another's transaction (`tachograph spool retry` beside a collector)."""


class SpoolError(CollectorError):
    """The spool cannot be opened or read."""


class UnwritableError(SpoolError):
    """The spool's directory cannot be made or written, whatever room there is: a wrong setting, as it is to every command."""

    exit_code = 2


class DiskFullError(CollectorError):
    """The disk does not take what should be written. Nothing of it was kept."""


def spool_file(data_dir: Path) -> Path:
    """Where below the data directory the spool lies."""
    return data_dir / "spool" / "spool.sqlite"


def data_dir_of(file: Path) -> Path:
    """The data directory of a spool that lies as `spool_file` says, absolute."""
    return file.resolve().parents[1]


def hold(file: Path) -> IO[str]:
    """Make the spool's directory and hold it against other collectors, until the result is closed.

    Raises:
        UnwritableError: it cannot be written.
        SpoolError: another process holds it, or the disk is full.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        held = _lock(file).open("w")
    except OSError as error:
        kind = SpoolError if error.errno in NO_ROOM else UnwritableError
        raise kind(f"{file.parent} cannot be written ({error.strerror}): name another --data-dir") from error
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        held.close()
        raise SpoolError(
            f"{file.parent} is held by another process (a collector that still runs?): stop it, or name another --data-dir"
        ) from error
    return held


def was_held(file: Path) -> bool:
    """Whether a collector has ever held it, or it is not ours to say. Makes nothing."""
    try:
        return _lock(file).exists()
    except PermissionError:
        return True


def _lock(file: Path) -> Path:
    return file.parent / "lock"


def open_for_writing(file: Path) -> sqlite3.Connection:
    """Open the file, made with its tables if missing. One connection may be used by several threads, in turns.

    Raises:
        SpoolError: it is no spool, or cannot be written.
    """
    with speaking_of(file):
        connection = sqlite3.connect(file, _BUSY_S, isolation_level=None, check_same_thread=False)
        # The first two count for a new file only, and before its first table.
        connection.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        # Some builds of SQLite overwrite what is deleted, so that letting go of requests needs as much disk as they do.
        connection.execute("PRAGMA secure_delete = OFF")
        connection.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
        # All tables or none: whoever looks in from beside sees no half of them.
        tables = files("collector.spool").joinpath("tables.sql").read_text("utf-8")
        connection.executescript(f"BEGIN IMMEDIATE; {tables} COMMIT;")
        return connection


@contextmanager
def opened_beside(file: Path) -> Iterator[sqlite3.Connection]:
    """The file, from a process beside the collector's, whether that runs or not.

    Raises:
        SpoolError: there is no spool, or it cannot be read.
    """
    missing = SpoolError(f"there is no spool at {file}: no collector has run with this --data-dir")
    if not file.exists():
        raise missing
    with speaking_of(file):
        connection = sqlite3.connect(f"{file.resolve().as_uri()}?mode=rw", _BUSY_S, isolation_level=None, uri=True)
        try:
            if not has_tables(connection):
                raise missing
            yield connection
        finally:
            connection.close()


def has_tables(connection: sqlite3.Connection) -> bool:
    """Whether the file is a spool already, and not one that a collector is about to make."""
    return connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is not None


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All or nothing, on disk when left.

    Raises:
        DiskFullError: the disk takes no more; nothing was kept.
    """
    try:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("COMMIT")
    except BaseException as error:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        if is_full(error):
            raise DiskFullError(f"the disk takes no more ({error})") from error
        raise


def is_full(error: BaseException) -> bool:
    """Whether SQLite could not write, for want of space or otherwise."""
    name = getattr(error, "sqlite_errorname", None) or ""
    return name == "SQLITE_FULL" or name.startswith("SQLITE_IOERR")


def bytes_on_disk(file: Path) -> int:
    """What the spool takes on disk, its log included."""
    return file.stat().st_size + log_bytes(file)


def log_bytes(file: Path) -> int:
    """What its log takes; as much may have to be carried into the file yet."""
    log = file.with_name(f"{file.name}-wal")
    return log.stat().st_size if log.exists() else 0


def free_bytes(file: Path) -> int:
    """What the disk has free for us."""
    disk = os.statvfs(file.parent)
    return disk.f_bavail * disk.f_frsize


class DiskBytes(NamedTuple):
    """A disk's room, in bytes; 0 where it does not answer."""

    free: int = 0
    """For us."""
    total: int = 0


def disk_bytes(file: Path) -> DiskBytes:
    """The room of the disk that a spool lies on, to be told."""
    try:
        disk = shutil.disk_usage(file.parent)
    except OSError:
        return DiskBytes()
    return DiskBytes(disk.free, disk.total)


@contextmanager
def speaking_of(file: Path) -> Iterator[None]:
    """What SQLite raises within becomes a `SpoolError` that names the file, and says what to do where it is damaged."""
    try:
        yield
    except sqlite3.Error as error:
        raise spool_error(file, error) from error


def is_damage(error: sqlite3.Error) -> bool:
    """Whether SQLite found a file that is none of its own, or no whole one."""
    name = getattr(error, "sqlite_errorname", None) or ""
    return name.startswith("SQLITE_CORRUPT") or name == "SQLITE_NOTADB"


def spool_error(file: Path, error: sqlite3.Error) -> SpoolError:
    """What is wrong with a spool, in one line."""
    if is_damage(error):
        return SpoolError(
            f"the spool {file} is damaged ({error}): stop the collector, move this file and its -wal and -shm away, and "
            "start anew; what waited in it has to be sent again, what was stored stays"
        )
    return SpoolError(f"the spool {file} cannot be used: {error}")


def check_whole(file: Path) -> int:
    """Read a spool that nobody writes to its end, without changing anything; the requests that wait in it.

    Raises:
        SpoolError: it is damaged, or is no spool.
    """
    with speaking_of(file), closing(sqlite3.connect(f"{file.resolve().as_uri()}?immutable=1", uri=True)) as connection:
        (found,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
        if found != "ok":
            raise SpoolError(f"the spool {file} is damaged ({str(found).splitlines()[0]})")
        (waiting,) = connection.execute("SELECT count(*) FROM requests").fetchone()
    return int(waiting)
