"""Opens an Nsight Systems SQLite export and asks it. Read-only, and nothing is written beside it.

Tables are made only where there is something to put into them, so that a missing one is
empty. Source: SQLite Schema Reference of Nsight Systems 2026.4, schema version 3.28.1.
"""

import hashlib
import io
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from engine_hooks.adapters.profiles.errors import TraceUnreadableError

SQLITE_MAGIC: Final = b"SQLite format 3\x00"
HEADER_BYTES: Final = 100
STRINGS: Final = "StringIds"
OWN_PREFIXES: Final = ("CUPTI_ACTIVITY_KIND_", "TARGET_INFO_", "META_DATA_", "ANALYSIS_DETAILS")
"""Besides `StringIds`, a table of one of these names tells an export from any other database."""
ROWS_AT_ONCE: Final = 4_096


class Export:
    """One export, open. Use as a context manager.

    Raises:
        TraceUnreadableError: from every method: the file cannot be opened, is cut off, is damaged, is no
            export, or lacks a column.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._check_length()
        try:
            # Immutable: no lock and no journal file, in a folder that may be read-only.
            self._connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)
        except sqlite3.Error as error:
            raise self._unreadable(error) from error
        self._connection.text_factory = lambda text: text.decode(errors="replace")
        try:
            self.tables = self._tables()
        except TraceUnreadableError:
            self._connection.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def _check_length(self) -> None:
        """SQLite reads zeros where a file ends early, and takes them for rows.

        Source: the database header of SQLite's file format: page size at byte 16 (1 is 65,536), length in pages at
        28, which holds where the change counters at 24 and 92 are equal.
        """
        try:
            with self.path.open("rb") as file:
                header = file.read(HEADER_BYTES)
                size_bytes = file.seek(0, io.SEEK_END)
        except OSError as error:
            raise TraceUnreadableError(f"{self.path} cannot be read: {error.strerror or error}") from error
        page_bytes = int.from_bytes(header[16:18]) or 1
        whole_bytes = (page_bytes if page_bytes > 1 else 65_536) * int.from_bytes(header[28:32])
        if size_bytes < HEADER_BYTES or (header[24:28] == header[92:96] and size_bytes < whole_bytes):
            raise TraceUnreadableError(
                f"{self.path} is cut off: it has {size_bytes:,} of {max(whole_bytes, HEADER_BYTES):,} bytes; "
                "nothing was imported"
            )

    def _tables(self) -> frozenset[str]:
        """Views are none of them: a foreign file could make one that never ends."""
        tables = frozenset(name for (name,) in self.all("SELECT name FROM sqlite_master WHERE type = 'table'"))
        if STRINGS not in tables or not any(name.startswith(OWN_PREFIXES) for name in tables):
            raise TraceUnreadableError(f"{self.path} is an SQLite database, but no export of Nsight Systems")
        return tables

    def rows(self, query: str, *values: Any) -> Iterator[tuple[Any, ...]]:
        """The rows of a query, a few thousand at a time in memory."""
        try:
            cursor = self._connection.execute(query, values)
            while batch := cursor.fetchmany(ROWS_AT_ONCE):
                yield from batch
        except (sqlite3.Error, UnicodeDecodeError) as error:  # The latter: SQLite's message quotes what is damaged.
            raise self._unreadable(error) from error

    def all(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """The rows of a query that has few."""
        return list(self.rows(query, *values))

    def all_of(self, table: str, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """The rows of a query over a table that may be missing."""
        return self.all(query, *values) if table in self.tables else []

    def text(self, number: Any) -> str:
        """A string by its number in `StringIds`; empty where there is none."""
        found = self.all("SELECT value FROM StringIds WHERE id = ?", number)
        return str(found[0][0]) if found else ""

    def digest(self) -> str:
        """SHA-256 of the file, in hex."""
        try:
            with self.path.open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise TraceUnreadableError(f"{self.path} cannot be read: {error.strerror or error}") from error

    def _unreadable(self, error: Exception) -> TraceUnreadableError:
        said = str(error).partition("\n")[0]
        if said.startswith("no such column"):
            return TraceUnreadableError(
                f"{self.path} is an export of another Nsight Systems schema ({said}): export the report again with "
                "a current nsys; nothing was imported"
            )
        return TraceUnreadableError(f"{self.path} is damaged ({said}); nothing was imported")
