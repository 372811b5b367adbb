"""What an evaluator remembers over a restart: where each alert stands, and history that is not stored yet.

A small SQLite file beside the data, and not ClickHouse: alerts matter most while ClickHouse is away
(docs/decisions/0014-alerts-remember-for-themselves.md).
"""

import contextlib
import errno
import fcntl
import json
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

from queries.alerts.book import Entry, Identity
from queries.alerts.errors import AlertStateError, UnwritableError
from queries.alerts.states import Standing, State

FILE: Final = "alerts.sqlite"
TABLES: Final = f"BEGIN IMMEDIATE; {(Path(__file__).parent / 'memory.sql').read_text(encoding='utf-8')} COMMIT;"
"""All or none: whoever reads beside the evaluator that is making them sees no half of them."""
OUTBOX_ROWS_MAX: Final = 100_000
"""History rows that wait; beyond, the oldest are dropped and counted."""
BATCH_ROWS: Final = 1000
NO_ROOM: Final = {errno.ENOSPC, errno.EDQUOT}
"""Why a directory cannot be written though it is the right one."""
_BUSY_S: Final = 5.0


class Batch(NamedTuple):
    """History rows that are sent together, however often."""

    number: int
    rows: list[dict[str, Any]]


class Memory:
    """The file of one evaluator; safe to use from several threads.

    Raises:
        UnwritableError: its directory cannot be made or written.
        AlertStateError: the file cannot be used, another evaluator holds it, or the disk is full.
    """

    def __init__(self, directory: Path) -> None:
        self._lock = threading.Lock()
        try:
            directory.mkdir(parents=True, exist_ok=True)
            self._held = _held(directory / "alerts.lock")
        except OSError as wrong:
            kind = AlertStateError if wrong.errno in NO_ROOM else UnwritableError
            raise kind(
                f"{directory} cannot be written ({wrong.strerror}): name another by --data-dir or TACHOGRAPH_DATA_DIR"
            ) from wrong
        try:
            self._connection = sqlite3.connect(
                directory / FILE, timeout=_BUSY_S, isolation_level=None, check_same_thread=False
            )
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.executescript(TABLES)
        except sqlite3.Error as wrong:
            self._held.close()
            raise AlertStateError(
                f"cannot keep the alerts' state in {directory}: {wrong}; set TACHOGRAPH_DATA_DIR"
            ) from wrong

    def entries(self) -> dict[Identity, Entry]:
        """Every alert that was not inactive."""
        with self._using() as connection:
            return read_entries(connection)

    def keep(self, entries: Iterable[Entry], rows: Iterable[Mapping[str, Any]], counters: Mapping[str, float]) -> None:
        """Remember these alerts, and no others; and put rows of history aside to be sent. All of it or nothing."""
        with self._using() as connection, _transaction(connection):
            connection.execute("DELETE FROM alerts")
            connection.executemany(
                "INSERT INTO alerts VALUES (?, ?)",
                ((json.dumps(entry.identity), json.dumps(document_of(entry))) for entry in entries),
            )
            connection.executemany("INSERT INTO outbox (row) VALUES (?)", ((json.dumps(row),) for row in rows))
            dropped = connection.execute(
                "DELETE FROM outbox WHERE id <= (SELECT max(id) FROM outbox) - ?", (OUTBOX_ROWS_MAX,)
            ).rowcount
            _add(connection, "history_rows_dropped", dropped)
            for name, value in counters.items():
                connection.execute("INSERT OR REPLACE INTO counters VALUES (?, ?)", (name, value))

    def batch(self) -> Batch | None:
        """The next rows of history to be sent; the same until they are `sent`. None where none wait."""
        with self._using() as connection, _transaction(connection):
            connection.execute(
                "UPDATE outbox SET batch = (SELECT min(id) FROM outbox)"
                " WHERE (SELECT count(*) FROM outbox WHERE batch IS NOT NULL) = 0"
                " AND id < (SELECT min(id) FROM outbox) + ?",
                (BATCH_ROWS,),
            )
            found = connection.execute("SELECT batch, row FROM outbox WHERE batch IS NOT NULL ORDER BY id").fetchall()
            return Batch(found[0][0], [json.loads(row) for _, row in found]) if found else None

    def sent(self, batch: Batch) -> None:
        """These rows are stored."""
        with self._using() as connection, _transaction(connection):
            connection.execute("DELETE FROM outbox WHERE batch = ?", (batch.number,))
            _add(connection, "history_rows_stored", len(batch.rows))

    def refused(self, batch: Batch) -> None:
        """These rows will never be stored."""
        with self._using() as connection, _transaction(connection):
            connection.execute("DELETE FROM outbox WHERE batch = ?", (batch.number,))
            _add(connection, "history_rows_refused", len(batch.rows))

    def close(self) -> None:
        with self._lock:
            self._connection.close()
            self._held.close()

    @contextmanager
    def _using(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                yield self._connection
            except (sqlite3.Error, ValueError, KeyError, TypeError) as wrong:
                raise AlertStateError(f"the alerts' state cannot be kept: {wrong}") from wrong


def has_begun(directory: Path) -> bool:
    """Whether an evaluator ever began to remember there.

    Raises:
        AlertStateError: it cannot be told.
    """
    try:
        return (directory / FILE).is_file()
    except OSError as wrong:
        raise AlertStateError(f"{directory} cannot be looked into: {wrong.strerror}") from wrong


def remembered(directory: Path) -> tuple[dict[Identity, Entry], dict[str, float]]:
    """What an evaluator remembers, and its counters, as of one moment, read beside it; nothing where none has begun yet.

    Raises:
        AlertStateError: the file cannot be read.
    """
    file = directory / FILE
    if not has_begun(directory):
        return {}, {}
    try:
        with contextlib.closing(
            sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True, timeout=_BUSY_S)
        ) as connection:
            connection.execute("BEGIN")
            if not connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
                return {}, {}
            counters = dict(connection.execute("SELECT name, value FROM counters").fetchall())
            return read_entries(connection), counters
    except (sqlite3.Error, ValueError, KeyError, TypeError) as wrong:
        raise AlertStateError(f"the alerts' state in {file} cannot be read: {wrong}") from wrong


def read_entries(connection: sqlite3.Connection) -> dict[Identity, Entry]:
    """The alerts of a file."""
    documents = connection.execute("SELECT document FROM alerts").fetchall()
    entries = (entry_of(json.loads(document)) for (document,) in documents)
    return {entry.identity: entry for entry in entries}


def document_of(entry: Entry) -> dict[str, Any]:
    """An alert as JSON keeps it."""
    standing = entry.standing
    return {
        "rule": entry.rule,
        "labels": entry.labels,
        "standing": {
            "state": standing.state,
            "was": standing.was,
            "held_s": standing.held_s,
            "clear_s": standing.clear_s,
            "missing_s": standing.missing_s,
            "ended_s": standing.ended_s,
        },
        "starts_at": entry.starts_at.isoformat() if entry.starts_at else None,
        "ends_at": entry.ends_at.isoformat() if entry.ends_at else None,
        "annotations": dict(entry.annotations),
        "measured": dict(entry.measured),
        "about": dict(entry.about),
        "link": entry.link,
    }


def entry_of(document: Mapping[str, Any]) -> Entry:
    """The alert that `document_of` wrote."""
    kept = document["standing"]
    standing = Standing(**{**kept, "state": State(kept["state"]), "was": State(kept["was"])})
    return Entry(
        rule=document["rule"],
        identity=tuple(sorted(document["labels"].items())),
        standing=standing,
        starts_at=_instant(document["starts_at"]),
        ends_at=_instant(document["ends_at"]),
        annotations=document["annotations"],
        measured=document["measured"],
        about=document["about"],
        link=document["link"],
    )


def _instant(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def _held(file: Path) -> IO[str]:
    lock = file.open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as wrong:
        lock.close()
        raise AlertStateError(
            f"another evaluator of alerts runs on {file.parent}: end it, or set TACHOGRAPH_DATA_DIR"
        ) from wrong
    return lock


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _add(connection: sqlite3.Connection, counter: str, amount: int) -> None:
    if amount > 0:
        connection.execute(
            "INSERT INTO counters VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = value + excluded.value",
            (counter, amount),
        )
