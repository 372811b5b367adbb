"""The spool: accepted requests on disk, in order, until they are stored; and the memory of those that were."""

import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any, Final

from collector.acceptance import Outcome, ReceivedRequest, token_of
from collector.decoding.packing import is_packed, packed
from collector.spool.database import (
    DiskFullError,
    bytes_on_disk,
    free_bytes,
    hold,
    log_bytes,
    open_for_writing,
    speaking_of,
    transaction,
)
from collector.spool.ledger import Entries, read_ledger, read_stored_by_day
from collector.spool.records import Batch, Kept, Ledger, SpoolLimits, SpoolState

REQUEST_OVERHEAD_BYTES: Final = 1024
"""What a request takes beside its bytes, so that many tiny ones have a bound as well."""

_COLUMNS: Final = "request_id, request, size, received_unix_ms, door, spans"
_BATCH_REQUESTS_MAX: Final = 10_000
_FORGOTTEN_AT_ONCE: Final = 10_000
_TAKEN_BACK_AT_ONCE: Final = 4
"""At most 64 MiB, as large as requests may be."""
_VACUUMED_PAGES: Final = 16_384
_RESERVED_BYTES: Final = 1024 * 1024
"""Room on disk that no request is put into, so that stored ones can be let go of."""
_SLACK_BYTES: Final = 8 * 1024 * 1024
"""Free space that an empty spool's file keeps, so that a steady flow does not make it grow and shrink all the time."""


class Spool:
    """One collector's spool. Any thread may call; calls take turns.

    Every change is one transaction, on disk when its method returns. A change that the disk does not take
    raises `DiskFullError`, and nothing of it was made.
    """

    def __init__(
        self,
        file: Path,
        limits: SpoolLimits | None = None,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        """Open it, made if missing.

        Raises:
            SpoolError: another collector holds it, it cannot be written, or is no spool.
        """
        self.file = file
        self.limits = limits or SpoolLimits()
        self._now_ms = now_ms
        self._lock = threading.RLock()
        self._seen_version: int | None = None
        self._wanted = False
        self._held = hold(file)
        try:
            self._connection = open_for_writing(file)
            self._inode = file.stat().st_ino
            with speaking_of(file):
                self._state = self._read_state()
        except BaseException:
            self._held.close()
            raise

    def close(self) -> None:
        """Let go of the file. What waits stays in it."""
        with self._lock:
            self._connection.close()
            self._held.close()

    # ---- bounds

    def no_room_for(self, size: int) -> str:
        """Why a request of so many bytes is turned away: `spool_bytes`, `disk_free`, `disk_full`, `spool_gone`; '' where there is room."""
        state, limits = self._state, self.limits
        kept = state.pending_bytes + state.set_aside_bytes
        if limits.bytes_max and kept + size > limits.bytes_max:
            return "spool_bytes"
        try:
            if self.file.stat().st_ino != self._inode:
                return "spool_gone"  # Else what is acknowledged would end with the process.
            free, taken = free_bytes(self.file), self._taken_by(size)
        except OSError:
            return "spool_gone"
        if limits.free_bytes_min and free - size < limits.free_bytes_min:
            return "disk_free"
        return "disk_full" if free < taken else ""

    def _taken_by(self, size: int) -> int:
        """What the disk must have for so many bytes to come in, and for what is stored to be let go of afterwards:
        they are written to the log, and with all of it to the file."""
        return 2 * size + log_bytes(self.file) + _RESERVED_BYTES

    # ---- what comes in

    def append(self, arrivals: Iterable[ReceivedRequest]) -> list[Outcome | Kept]:
        """Put requests on disk, and say of each whether it is new, waits already, or what became of it before."""
        entries = Entries()
        arriving = list(arrivals)
        with self._lock, self._changing():
            if free_bytes(self.file) < self._taken_by(_size_of(arriving)):
                raise DiskFullError(f"the disk of {self.file.parent} is full")
            taken = [self._append(arrival, entries) for arrival in arriving]
            entries.write(self._connection)
        return taken

    def _append(self, arrival: ReceivedRequest, entries: Entries) -> Outcome | Kept:
        known = self._known(arrival.request_id)
        if known is not Kept.NEW:
            entries.received_again(arrival.door, arrival.spans)
            return known
        self._insert(arrival)
        entries.received(arrival.door, arrival.spans)
        return known

    def _insert(self, arrival: ReceivedRequest) -> None:
        size = arrival.size + REQUEST_OVERHEAD_BYTES
        self._connection.execute(
            "INSERT INTO requests (request_id, door, received_unix_ms, spans, size, request) VALUES (?, ?, ?, ?, ?, ?)",
            (arrival.request_id, arrival.door, arrival.received_unix_ms, arrival.spans, size, arrival.packed),
        )
        self._count(requests=1, size=size)

    def _known(self, request_id: str) -> Outcome | Kept:
        answered = self._one("SELECT outcome FROM answered WHERE request_id = ?", request_id)
        if answered is not None:
            return _outcome_of(answered)._replace(duplicate=True)
        waits = self._one(
            "SELECT EXISTS (SELECT 1 FROM requests WHERE request_id = ?1)"
            " OR EXISTS (SELECT 1 FROM set_aside WHERE request_id = ?1)",
            request_id,
        )
        return Kept.AGAIN if waits else Kept.NEW

    # ---- what goes out

    def next_batch(self, bytes_max: int, after: int = 0) -> Batch | None:
        """The oldest requests that wait, fixed as one insert; None where none wait.

        An insert that was begun comes first, as it was fixed then. `after` looks behind that position only.
        """
        with self._changing():
            begun = self._connection.execute(
                "SELECT first_position, last_position, token FROM batches WHERE first_position > ? ORDER BY 1 LIMIT 1",
                (after,),
            ).fetchone()
            return self._loaded(*begun, attempted=True) if begun else self._fix(bytes_max, after)

    def _fix(self, bytes_max: int, after: int) -> Batch | None:
        candidates = self._connection.execute(
            "SELECT position, size, request_id FROM requests WHERE position > ? ORDER BY position LIMIT ?",
            (after, _BATCH_REQUESTS_MAX),
        )
        ids: dict[int, str] = {}
        taken = 0
        for position, size, request_id in candidates:
            taken += size
            if ids and taken > bytes_max:
                break
            ids[position] = request_id
        return self._record_batch(list(ids), list(ids.values())) if ids else None

    def _record_batch(self, positions: list[int], request_ids: list[str]) -> Batch:
        bounds = (positions[0], positions[-1], token_of(request_ids))
        self._connection.execute("INSERT INTO batches VALUES (?, ?, ?)", bounds)
        return self._loaded(*bounds, attempted=False)

    def _loaded(self, first: int, last: int, token: str, *, attempted: bool) -> Batch:
        rows = self._connection.execute(
            f"SELECT {_COLUMNS} FROM requests WHERE position BETWEEN ? AND ? ORDER BY position",  # noqa: S608 -- our own names
            (first, last),
        )
        return Batch(first, last, token, [_read(row) for row in rows], attempted)

    def finish(self, batch: Batch, outcomes: Mapping[str, Outcome]) -> None:
        """A batch is stored: remember what became of each of its requests, and let go of them."""
        entries = Entries()
        with self._changing():
            now = self._now_ms()
            for one in batch.requests:
                outcome = outcomes[one.request_id]
                entries.settled(one.door, one.spans, outcome, one.received_unix_ms)
                self._connection.execute(
                    "INSERT OR REPLACE INTO answered (request_id, answered_unix_ms, outcome) VALUES (?, ?, ?)",
                    (one.request_id, now, _text_of(outcome)),
                )
            self._remove(batch)
            self._forget(now)
            entries.write(self._connection)

    def split(self, batch: Batch) -> None:
        """Two inserts, each one half, in place of one that ClickHouse refuses."""
        middle = len(batch.requests) // 2
        with self._changing():
            self._connection.execute("DELETE FROM batches WHERE first_position = ?", (batch.first_position,))
            positions = [
                position
                for (position,) in self._connection.execute(
                    "SELECT position FROM requests WHERE position BETWEEN ? AND ? ORDER BY position",
                    (batch.first_position, batch.last_position),
                )
            ]
            ids = [one.request_id for one in batch.requests]
            for half in (slice(0, middle), slice(middle, None)):
                self._record_batch(positions[half], ids[half])

    def set_aside(self, batch: Batch, error: str) -> None:
        """ClickHouse refuses these whatever is done: keep them with its words, out of the way of the others."""
        entries = Entries()
        with self._changing():
            for one in batch.requests:
                entries.set_aside(one.door, one.spans)
            self._connection.execute(
                "INSERT INTO set_aside (request_id, door, received_unix_ms, set_aside_unix_ms, spans, size, error, request)"
                " SELECT request_id, door, received_unix_ms, ?, spans, size, ?, request FROM requests"
                " WHERE position BETWEEN ? AND ?",
                (self._now_ms(), error, batch.first_position, batch.last_position),
            )
            self._remove(batch)
            self._count(set_aside=len(batch.requests), set_aside_size=_size_of(batch.requests))
            entries.write(self._connection)

    def take_back(self) -> int:
        """Put what was set aside, and is wanted again, at the end of what waits; how many requests that were."""
        if not self._wanted_beside():
            return 0
        entries = Entries()
        with self._changing():
            wanted = self._connection.execute(
                f"SELECT {_COLUMNS} FROM set_aside WHERE retry_wanted LIMIT ?",  # noqa: S608 -- our own names
                (_TAKEN_BACK_AT_ONCE,),
            )
            back = [_read(row) for row in wanted]
            for one in back:
                self._insert(one)
                entries.tried_again(one.door, one.spans)
                self._connection.execute("DELETE FROM set_aside WHERE request_id = ?", (one.request_id,))
            self._count(set_aside=-len(back), set_aside_size=-_size_of(back))
            entries.write(self._connection)
            self._wanted = len(back) == _TAKEN_BACK_AT_ONCE
        return len(back)

    def _wanted_beside(self) -> bool:
        """Whether another process (`tachograph spool`) wants something back; what it discarded is counted no more."""
        with self._lock:
            version = self._one("PRAGMA data_version")
            if version != self._seen_version:
                self._state = self._read_state()
                self._wanted = bool(self._one("SELECT EXISTS (SELECT 1 FROM set_aside WHERE retry_wanted)"))
                self._seen_version = version
            return self._wanted

    def _remove(self, batch: Batch) -> None:
        bounds = (batch.first_position, batch.last_position)
        self._connection.execute("DELETE FROM requests WHERE position BETWEEN ? AND ?", bounds)
        self._connection.execute("DELETE FROM batches WHERE first_position = ?", bounds[:1])
        self._count(requests=-len(batch.requests), size=-_size_of(batch.requests))

    def _forget(self, now_ms: int) -> None:
        """Outcomes beyond the bounds of number and age, the oldest first."""
        newest = self._one("SELECT max(position) FROM answered") or 0
        self._connection.execute(
            "DELETE FROM answered WHERE position IN (SELECT position FROM answered ORDER BY position LIMIT ?)"
            " AND (position <= ? OR answered_unix_ms < ?)",
            (_FORGOTTEN_AT_ONCE, newest - self.limits.answered_max, now_ms - self.limits.answered_s * 1000),
        )

    def give_back_space(self) -> None:
        """Give the disk what an emptied spool no longer needs: what is beyond its slack, or all of it on a scant disk."""
        with self._lock:
            if not self._state.pending_requests and (bytes_on_disk(self.file) > _SLACK_BYTES or self._is_scant()):
                # A script is stepped to its end, a page a step; a query of no columns is stepped once.
                self._connection.executescript(f"PRAGMA incremental_vacuum({_VACUUMED_PAGES})")
                self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def _is_scant(self) -> bool:
        """Whether the log, which counts against what comes in, takes room on a disk that has little."""
        return log_bytes(self.file) > 0 and free_bytes(self.file) < self._taken_by(_SLACK_BYTES)

    # ---- what is told

    def state(self) -> SpoolState:
        """What waits, as of the last change."""
        return self._state

    def ledger(self) -> dict[str, Ledger]:
        """What became of every span, by door."""
        with self._lock:
            return read_ledger(self._connection)

    def stored_by_day(self) -> dict[date, int]:
        """Executions stored, by the day (UTC) they were received on; of the last 60 days."""
        with self._lock:
            return read_stored_by_day(self._connection)

    # ---- within

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """One change, on disk or not at all; what is told of the spool follows it."""
        with self._lock:
            before = self._state
            try:
                with transaction(self._connection):
                    yield
            except BaseException:
                self._state = before
                raise

    def _count(self, requests: int = 0, size: int = 0, set_aside: int = 0, set_aside_size: int = 0) -> None:
        """Change what is told of the spool by this much."""
        before = self._state
        self._state = SpoolState(
            before.pending_requests + requests,
            before.pending_bytes + size,
            self._one("SELECT received_unix_ms FROM requests ORDER BY position LIMIT 1"),
            before.set_aside_requests + set_aside,
            before.set_aside_bytes + set_aside_size,
        )

    def _read_state(self) -> SpoolState:
        """Counted afresh."""
        requests, size = self._connection.execute("SELECT count(), ifnull(sum(size), 0) FROM requests").fetchone()
        aside = self._connection.execute("SELECT count(), ifnull(sum(size), 0) FROM set_aside").fetchone()
        oldest = self._one("SELECT received_unix_ms FROM requests ORDER BY position LIMIT 1")
        return SpoolState(requests, size, oldest, *aside)

    def _one(self, query: str, *parameters: Any) -> Any:
        """The first value that a query gives; None where it gives none."""
        with self._lock:
            row = self._connection.execute(query, parameters).fetchone()
            return row[0] if row else None


def _size_of(requests: Iterable[ReceivedRequest]) -> int:
    """What the bounds count."""
    return sum(one.size + REQUEST_OVERHEAD_BYTES for one in requests)


def _read(row: tuple[Any, ...]) -> ReceivedRequest:
    """A request by its `_COLUMNS`. Collectors before this one kept them as they came."""
    request_id, request, size, *rest = row
    frame = request if is_packed(request) else packed(request)
    return ReceivedRequest(request_id, frame, size - REQUEST_OVERHEAD_BYTES, *rest)


def _text_of(outcome: Outcome) -> str:
    return json.dumps(
        [outcome.stored, outcome.refused, outcome.other_spans, outcome.deduplicated, outcome.clock_trouble],
        separators=(",", ":"),
    )


def _outcome_of(text: str) -> Outcome:
    return Outcome(*json.loads(text))
