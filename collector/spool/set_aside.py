"""What waits in a spool and what was set aside, seen and asked for from beside it, whether its collector runs or not."""

import gzip
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from collector.decoding.packing import is_packed, unpacked
from collector.decoding.wire import varint
from collector.spool.database import SpoolError, opened_beside
from engine_hooks.whole_file import written_whole


class WaitingAtDoor(NamedTuple):
    """What came in by one door and waits to be stored."""

    door: str
    requests: int
    spans: int
    size: int
    """Bytes."""
    oldest_unix_ms: int


class SetAside(NamedTuple):
    """One request that ClickHouse refuses."""

    request_id: str
    door: str
    received_unix_ms: int
    set_aside_unix_ms: int
    spans: int
    size: int
    """Bytes."""
    error: str
    """ClickHouse's words."""
    retry_wanted: bool
    """It goes in again as soon as the collector sees to it."""


def waiting(file: Path) -> list[WaitingAtDoor]:
    """What waits, by door.

    Raises:
        SpoolError: there is no spool, or it cannot be read; so do all functions here.
    """
    query = (
        "SELECT door, count(), sum(spans), sum(size), min(received_unix_ms) FROM requests GROUP BY door ORDER BY door"
    )
    with opened_beside(file) as spool:
        return [WaitingAtDoor(*row) for row in spool.execute(query)]


def set_aside(file: Path) -> list[SetAside]:
    """What was set aside, the oldest first."""
    with opened_beside(file) as spool:
        rows = spool.execute(
            "SELECT request_id, door, received_unix_ms, set_aside_unix_ms, spans, size, error, retry_wanted"
            " FROM set_aside ORDER BY set_aside_unix_ms, request_id"
        )
        return [one._replace(retry_wanted=bool(one.retry_wanted)) for one in map(SetAside._make, rows)]


def ask_again(file: Path, prefixes: Iterable[str]) -> int:
    """Want requests that were set aside to be tried again, by the beginnings of their ids, or all of them; how many.

    The collector takes them back within a second, or at its next start.
    """
    with opened_beside(file) as spool:
        ids = _ids(spool, prefixes)
        spool.executemany("UPDATE set_aside SET retry_wanted = 1 WHERE request_id = ?", [(one,) for one in ids])
        return len(ids)


def discard(file: Path, prefixes: Iterable[str]) -> int:
    """Let go of requests that were set aside, by the beginnings of their ids, or all of them; how many.

    The ledger goes on counting their spans as set aside. They may be sent again, as if they had never come.
    """
    with opened_beside(file) as spool:
        ids = _ids(spool, prefixes)
        spool.executemany("DELETE FROM set_aside WHERE request_id = ?", [(one,) for one in ids])
        return len(ids)


def export(file: Path, prefixes: Iterable[str], target: Path) -> int:
    """Write requests that were set aside to a gzipped file of length-delimited protobuf, whole or not at all; how many.

    Raises:
        SpoolError: the file cannot be written.
    """
    try:
        with opened_beside(file) as spool, written_whole(target) as beside, gzip.open(beside, "wb") as written:
            ids = _ids(spool, prefixes)
            for one in ids:
                (request,) = spool.execute("SELECT request FROM set_aside WHERE request_id = ?", (one,)).fetchone()
                request = unpacked(request) if is_packed(request) else request
                written.write(varint(len(request)) + request)
            return len(ids)
    except OSError as error:
        raise SpoolError(f"{target} cannot be written: {error.strerror}") from error


def _ids(spool: sqlite3.Connection, prefixes: Iterable[str]) -> list[str]:
    every = [one for (one,) in spool.execute("SELECT request_id FROM set_aside ORDER BY set_aside_unix_ms, request_id")]
    wanted = tuple(prefixes)
    for prefix in wanted:
        if not any(one.startswith(prefix) for one in every):
            raise SpoolError(
                f"nothing that was set aside has an id that begins with {prefix!r}: see tachograph spool list"
            )
    return [one for one in every if not wanted or one.startswith(wanted)]
