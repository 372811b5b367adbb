"""What a backup is: `store/` as ClickHouse's BACKUP writes it, `spool.sqlite`, and `manifest.json`, written last.

CollectorError
└── BackupError
"""

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

from clickhouse_connect.driver.client import Client

from collector.errors import CollectorError
from collector.migrations import schema_files

FORMAT: Final = 1
MANIFEST: Final = "manifest.json"
STORE: Final = "store"
SPOOL: Final = "spool.sqlite"
_CONTENTS: Final = """
SELECT table, sum(rows), sum(bytes_on_disk), toString(sum(cityHash64(hash_of_all_files)))
FROM system.parts WHERE active AND database = currentDatabase()
GROUP BY table ORDER BY table
"""


class BackupError(CollectorError):
    """A backup that cannot be made or put back."""


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
    format: int = FORMAT

    @classmethod
    def of(cls, client: Client, waiting_requests: int, spool_sha256: str) -> Self:
        """Of a store as it is."""
        applied = client.query("SELECT file_name, toString(sha256) FROM schema_changes").result_rows
        return cls(
            datetime.now(UTC).isoformat(timespec="seconds"),
            version("tachograph"),
            str(client.server_version),
            {str(name): str(sha256) for name, sha256 in applied},
            contents_of(client),
            waiting_requests,
            spool_sha256,
        )

    def write(self, directory: Path) -> None:
        """Into a backup's directory."""
        told = {**self._asdict(), "tables": {name: table._asdict() for name, table in self.tables.items()}}
        (directory / MANIFEST).write_text(json.dumps(told, indent=2))

    @classmethod
    def read(cls, directory: Path) -> Self:
        """The manifest of a backup that this version can put back.

        Raises:
            BackupError: it is no backup, was not finished, or is of another version.
        """
        try:
            told: dict[str, Any] = json.loads((directory / MANIFEST).read_text())
        except FileNotFoundError as error:
            raise BackupError(f"{directory} is no backup, or one that was interrupted: it has no {MANIFEST}") from error
        except NotADirectoryError as error:
            raise BackupError(f"{directory} is no backup: that is a directory, with a {MANIFEST} in it") from error
        except (OSError, ValueError) as error:
            raise BackupError(f"{directory / MANIFEST} cannot be read: {error}") from error
        if told.get("format") != FORMAT:
            raise BackupError(
                f"{directory} has format {told.get('format')}, made by Tachograph {told.get('tachograph')}: "
                f"this is {version('tachograph')}, which reads format {FORMAT}"
            )
        manifest = cls(**{**told, "tables": {name: Contents(**table) for name, table in told["tables"].items()}})
        manifest.check_schema(directory)
        return manifest

    def check_schema(self, directory: Path) -> None:
        """Refuse a store whose schema this version does not know: it could be read wrongly."""
        known = {file.name: file.sha256 for file in schema_files(otel_traces=True)}
        if strange := sorted(name for name, sha256 in self.schema.items() if known.get(name) != sha256):
            raise BackupError(
                f"{directory} was made by Tachograph {self.tachograph} with another schema ({', '.join(strange[:3])}): "
                f"put it back with that version, not {version('tachograph')}"
            )


def contents_of(client: Client) -> dict[str, Contents]:
    """What is in each table of the client's database."""
    return {
        str(table): Contents(int(rows), int(size), str(checksum))
        for table, rows, size, checksum in client.query(_CONTENTS).result_rows
    }


def sha256_of(file: Path) -> str:
    """The hash of a file's content."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
