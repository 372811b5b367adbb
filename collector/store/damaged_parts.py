"""Parts of the embedded store whose files are shorter than they were written, and how their rows come back.

Where a disk fills up while the engine writes a part, it does not notice that the end of a file could not be written (seen in 26.9.2,
with its own defaults): it answers an insert, or takes a merged part for whole and lets go of what it was merged from. So

- what merges have replaced is kept for a minute (`old_parts_lifetime`), and within that minute a table that has such a part is loaded
  anew. Loading compares sizes: the engine puts the damaged part aside, and takes its sources instead. So does a restart;
- while the disk is nearly full, the spool lets go of nothing before the parts of its insert have been found whole.

StoreUnavailableError
└── DamagedInsertError   what was inserted could not be written to its end
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import structlog
from clickhouse_connect.driver.client import Client

from collector.acceptance import StoreUnavailableError
from collector.disk_space import free_bytes_in
from collector.repeated_look import RepeatedLook
from collector.store.client import StoreClient

log = structlog.get_logger(__name__)

LOOK_EVERY_S: Final = 5.0
_NEW_PARTS: Final = """
SELECT table, name, path, rows, bytes_on_disk
FROM system.parts
WHERE active AND database = currentDatabase() AND modification_time > now() - INTERVAL 10 MINUTE
"""
# What has taken their place: parts that hold nothing but what they held.
_SET_ASIDE: Final = """
SELECT d.table AS table, d.name AS name, d.path AS path, sum(p.rows) AS rows_there
FROM system.detached_parts AS d
LEFT JOIN (SELECT * FROM system.parts WHERE active AND database = currentDatabase()) AS p
    ON p.table = d.table AND p.partition_id = d.partition_id
    AND p.min_block_number >= d.min_block_number AND p.max_block_number <= d.max_block_number
WHERE d.database = currentDatabase() AND startsWith(ifNull(d.reason, ''), 'broken')
GROUP BY ALL
"""
# What it was merged from or changed from. A part that has none was inserted.
_SOURCES: Final = """
SELECT count() FROM system.parts AS source
INNER JOIN (
    SELECT * FROM system.parts WHERE database = currentDatabase() AND table = {table:String} AND name = {part:String}
) AS made ON made.partition_id = source.partition_id
WHERE source.database = currentDatabase() AND source.table = {table:String} AND NOT source.active
    AND source.min_block_number >= made.min_block_number AND source.max_block_number <= made.max_block_number
"""
_UNCOUNTED: Final = frozenset(
    ("checksums.txt", "columns.txt", "columns_substreams.txt", "default_compression_codec.txt", "metadata_version.txt")
)
"""Files of a part that its size does not count. They are never empty."""
_LINES: Final = ("columns.txt", "columns_substreams.txt")
"""Those of them that end with a line's end."""
_PREFIXES: Final = ("broken-on-start_", "broken_")


class NewPart(NamedTuple):
    """A part as the engine takes it to be."""

    table: str
    name: str
    path: Path
    rows: int
    bytes_on_disk: int

    @property
    def key(self) -> tuple[str, str]:
        """Names it in this store."""
        return self.table, self.name

    @property
    def is_damaged(self) -> bool:
        """Its files are shorter than that; False where it is gone meanwhile."""
        try:
            sizes = {file.name: file.stat().st_size for file in os.scandir(self.path)}
            lines = [(self.path / name).read_bytes() for name in _LINES if name in sizes]
        except FileNotFoundError:
            return False
        counted = sum(size for name, size in sizes.items() if name not in _UNCOUNTED)
        are_uncounted_whole = all(sizes.get(name) for name in _UNCOUNTED & sizes.keys()) and all(
            text.endswith(b"\n") for text in lines
        )
        return counted < self.bytes_on_disk or not are_uncounted_whole


class DamagedInsertError(StoreUnavailableError):
    """What was inserted, or something else meanwhile, could not be written to its end: it is inserted again."""


class DamagedParts(RepeatedLook):
    """Looks every few seconds at the parts that are new, and after an insert where it matters.

    Args:
        directory: Of the store.
        nearly_full_bytes: With less free on its disk than this, each insert is looked at before it counts.
    """

    def __init__(self, store: StoreClient, directory: Path, nearly_full_bytes: int) -> None:
        super().__init__("damaged parts", "damaged parts not looked for", LOOK_EVERY_S, looks_at_once=True)
        self._store = store
        self._directory = directory
        self._nearly_full_bytes = nearly_full_bytes
        self._one_at_a_time = threading.Lock()
        self._whole: set[tuple[str, str]] = set()
        self._rows: dict[tuple[str, str], int] = {}
        self._away: set[str] = set()
        self._told: set[tuple[str, str]] = set()
        self._is_settled = False
        """Nothing was loaded since all that had been put aside was told of. A part is put aside as its table is loaded."""

    def trouble(self) -> str:
        """Which tables could not be loaded again; empty where all are there."""
        return f"loading {', '.join(sorted(self._away))} again, after damage to its parts" if self._away else ""

    def see_to_it(self) -> None:
        """Find damaged parts, and put back what they were merged from.

        Raises:
            CollectorError: the store does not answer.
            ClickHouseError: it fails; a table that is away by then is tried again by the next look.
        """
        with self._store.using() as client, self._one_at_a_time:
            self._mend(client)
            if not self._is_settled:
                self._settle(client)

    @contextmanager
    def inserting(self, client: Client) -> Iterator[None]:
        """An insert, after which its parts are whole.

        Raises:
            DamagedInsertError: one was not, or another one meanwhile. Made again by the same token the insert is stored once: what was
                damaged of it is gone with its token, and of what was not, the token is known.
            ClickHouseError: as it comes.
        """
        with self._one_at_a_time:
            was_nearly_full = self._is_nearly_full()
            yield
            if (was_nearly_full or self._is_nearly_full()) and self._mend(client, is_insert_made_again=True):
                self._settle(client)
                raise DamagedInsertError("the disk was full, and what was stored is damaged: it is stored again")

    def _is_nearly_full(self) -> bool:
        return free_bytes_in(self._directory) < self._nearly_full_bytes

    def _mend(self, client: Client, *, is_insert_made_again: bool = False) -> bool:
        """Load each table again that has a damaged part; whether one had."""
        damaged = self._found(client)
        tables = set(self._away)
        for part in damaged:
            log.error("a part of the store is damaged: a full disk?", table=part.table, part=part.name, rows=part.rows)
            named = {"table": part.table, "part": part.name}
            if is_insert_made_again and client.query(_SOURCES, parameters=named).first_row == (0,):
                client.command("ALTER TABLE {table:Identifier} DROP PART {part:String}", parameters=named)
                continue
            self._rows[part.key] = part.rows
            tables.add(part.table)
        for table in sorted(tables):
            self._load_again(client, table)
        return bool(damaged)

    def _found(self, client: Client) -> list[NewPart]:
        rows = client.query(_NEW_PARTS).result_rows
        parts = [NewPart(table, name, Path(path), *sizes) for table, name, path, *sizes in rows]
        damaged = [part for part in parts if part.key not in self._whole and part.is_damaged]
        self._whole = {part.key for part in parts} - {part.key for part in damaged}
        return damaged

    def _load_again(self, client: Client, table: str) -> None:
        named = {"table": table}
        if table not in self._away:
            client.command("DETACH TABLE {table:Identifier} SYNC", parameters=named)
            self._away.add(table)
            self._is_settled = False
        client.command("ATTACH TABLE IF NOT EXISTS {table:Identifier}", parameters=named)
        self._away.discard(table)

    def _settle(self, client: Client) -> None:
        """Tell of each part that was put aside, once, and delete those whose rows are all there."""
        for table, name, path, rows_there in client.query(_SET_ASIDE).result_rows:
            if (table, name) in self._told:
                continue
            rows = self._rows.pop((table, _own_name(name)), None) or _rows_of(Path(path))
            if rows is not None and rows_there >= rows:
                client.command(
                    "ALTER TABLE {table:Identifier} DROP DETACHED PART {part:String} SETTINGS allow_drop_detached = 1",
                    parameters={"table": table, "part": name},
                )
                log.warning("what a damaged part was merged from is back", table=table, part=name, rows=rows_there)
            else:
                self._told.add((table, name))
                lost = None if rows is None else rows - rows_there
                log.error("rows of a damaged part are lost", table=table, part=name, rows_lost=lost, directory=path)
        self._is_settled = True


def _own_name(detached: str) -> str:
    """The name that a part had before it was put aside."""
    prefix = next((one for one in _PREFIXES if detached.startswith(one)), "")
    return detached.removeprefix(prefix)


def _rows_of(part: Path) -> int | None:
    """How many rows a part says that it has; None where that file is damaged as well."""
    try:
        return int((part / "count.txt").read_text())
    except (OSError, ValueError):
        return None
