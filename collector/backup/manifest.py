"""What a backup is: `store/` as ClickHouse's BACKUP writes it, `spool.sqlite`, and `manifest.json`, written last.

CollectorError
└── BackupError
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

from clickhouse_connect.driver.client import Client

from collector.errors import CollectorError
from collector.store.migrations import all_schema_files, applied_changes

FORMAT: Final = 1
MANIFEST: Final = "manifest.json"
STORE: Final = "store"
SPOOL: Final = "spool.sqlite"
WHOLE_ONE: Final = "copy it anew from where it was made, or put another backup back"
"""What to do where a backup is damaged."""
_PARTS: Final = """
SELECT table, name, rows, bytes_on_disk, cityHash64(hash_of_all_files), active
FROM system.parts WHERE database = currentDatabase()
ORDER BY table, name
"""


class BackupError(CollectorError):
    """A backup that cannot be made or put back."""


class WrongPlaceError(BackupError):
    """A backup, or a restore, has no place where it was sent."""

    exit_code = 2


class Part(NamedTuple):
    """One of the parts that a table consists of. None ever changes: another one takes its place."""

    table: str
    name: str
    rows: int
    bytes: int
    checksum: int
    """Of the checksums of its files."""
    is_active: bool
    """Read, and not one whose place another one has taken."""


class Contents(NamedTuple):
    """What is in one table."""

    rows: int
    bytes: int
    checksum: str
    """Of the checksums of its parts, which a restored table has as well."""


class Manifest(NamedTuple):
    """What a backup says of itself."""

    made_at: str
    tachograph: str
    clickhouse: str
    schema: Mapping[str, str]
    """The files applied, each with its hash."""
    tables: Mapping[str, Contents]
    waiting_requests: int
    """Requests that were in the spool, not stored yet."""
    spool_sha256: str = ""
    """Of the file `spool.sqlite`; empty where there was none, and in backups made before it was noted."""
    files: Mapping[str, str] = {}
    """SHA-256 of every file of the store that ClickHouse does not check itself, as `files_of` gives them. Empty in
    backups made before they were noted."""
    format: int = FORMAT

    @classmethod
    def of(
        cls,
        client: Client,
        tables: Mapping[str, Contents],
        waiting_requests: int,
        spool_sha256: str,
        files: Mapping[str, str],
    ) -> Self:
        """Of a store, and what was copied of it."""
        return cls(
            datetime.now(UTC).isoformat(timespec="seconds"),
            version("tachograph"),
            str(client.server_version),
            applied_changes(client),
            tables,
            waiting_requests,
            spool_sha256,
            files,
        )

    def write(self, directory: Path) -> None:
        """Into a backup's directory."""
        told = {**self._asdict(), "tables": {name: table._asdict() for name, table in self.tables.items()}}
        (directory / MANIFEST).write_text(json.dumps(told, indent=2))

    @classmethod
    def read(cls, directory: Path) -> Self:
        """The manifest of a backup that this version can put back.

        Raises:
            BackupError: it is no backup, was not finished, is of another version, or has other files than it says.
        """
        try:
            told: dict[str, Any] = json.loads((directory / MANIFEST).read_text())
        except FileNotFoundError as error:
            raise BackupError(f"{directory} is no backup, or one that was interrupted: it has no {MANIFEST}") from error
        except NotADirectoryError as error:
            raise BackupError(f"{directory} is no backup: that is a directory, with a {MANIFEST} in it") from error
        except (OSError, ValueError) as error:
            raise BackupError(f"{directory / MANIFEST} cannot be read: {error}") from error
        try:
            if told.get("format") != FORMAT:
                raise BackupError(
                    f"{directory} has format {told.get('format')}, made by Tachograph {told.get('tachograph')}: "
                    f"this is {version('tachograph')}, which reads format {FORMAT}"
                )
            manifest = cls(**{**told, "tables": {name: Contents(**table) for name, table in told["tables"].items()}})
        except (AttributeError, KeyError, TypeError) as error:
            raise BackupError(f"{directory / MANIFEST} cannot be read: {error}; {WHOLE_ONE}") from error
        manifest.check_schema(directory)
        manifest.check_files(directory)
        return manifest

    def check_schema(self, directory: Path) -> None:
        """Refuse a store whose schema this version does not know: it could be read wrongly."""
        known = {file.name: file.sha256 for file in all_schema_files()}
        if strange := sorted(name for name, sha256 in self.schema.items() if known.get(name) != sha256):
            raise BackupError(
                f"{directory} was made by Tachograph {self.tachograph} with another schema ({', '.join(strange[:3])}): "
                f"put it back with that version, not {version('tachograph')}"
            )

    def check_files(self, directory: Path) -> None:
        """Refuse a backup in which files that ClickHouse does not check itself are not those that it was made with.

        Else a view that has other words, and is SQL all the same, would go on storing wrong rows.
        """
        if not self.files:
            return
        found = files_of(directory)
        for name in sorted({*self.files, *found}):
            if found.get(name) != self.files.get(name):
                what = "is not what was copied: its checksum is not the manifest's" if name in found else "is missing"
                raise BackupError(f"the backup {directory} is damaged: {name} {what}; {WHOLE_ONE}")


def files_of(directory: Path) -> dict[str, str]:
    """What ClickHouse does not check itself of a store in a backup, by its place in it, each with its SHA-256.

    That is what lies outside the parts (the SQL of tables and views, the engine's list of what it copied), and the short
    texts of each part, of which some are in no list of checksums.
    """
    data = directory / STORE / "data"
    return {
        str(file.relative_to(directory)): sha256_of(file)
        for file in sorted((directory / STORE).rglob("*"))
        if file.is_file() and (file.suffix == ".txt" or not file.is_relative_to(data))
    }


def parts_of(client: Client) -> list[Part]:
    """Every part in the client's database, also those whose place others have taken."""
    return [Part(*row) for row in client.query(_PARTS).result_rows]


def contents_of(parts: Iterable[Part]) -> dict[str, Contents]:
    """What is in each table that consists of these parts. One without rows counts for nothing: the engine lets it go."""
    by_table: dict[str, list[Part]] = {}
    for part in parts:
        if part.rows:
            by_table.setdefault(part.table, []).append(part)
    return {
        table: Contents(
            sum(part.rows for part in own),
            sum(part.bytes for part in own),
            str(sum(part.checksum for part in own) % 2**64),
        )
        for table, own in by_table.items()
    }


def sha256_of(file: Path) -> str:
    """The hash of a file's content."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
