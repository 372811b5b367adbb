"""A mark in time: what was noted, about which engines. Made here, stored through the collector's door for rows."""

import unicodedata
import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

from queries.errors import CallError
from queries.parameters import instant
from queries.rows import store_rows

TABLE: Final = "annotations"
TEXT_MAX: Final = 200
"""Characters of a mark: it stands in one line, beside others."""
NAME_MAX: Final = 200
"""Characters of a host, engine, package or author."""

AHEAD_MAX: Final = timedelta(days=1)
"""A mark says what happened; clocks and time zones that differ are forgiven."""
WITHDRAWN: Final = ""
"""The text of a row that takes a mark back. No mark has it."""


class Mark(NamedTuple):
    """One mark. A name that is '' is any."""

    annotation_id: str
    at: datetime
    """UTC."""
    text: str
    host_name: str = ""
    service_instance_id: str = ""
    engine_package: str = ""
    author: str = ""

    def concerns(self, host_name: str, service_instance_id: str, engine_package: str) -> bool:
        """Whether it is about this engine."""
        return (
            self.host_name in ("", host_name)
            and self.service_instance_id in ("", service_instance_id)
            and self.engine_package in ("", engine_package)
        )

    @property
    def about(self) -> str:
        """What it names, for people; '' where it is about every engine."""
        parts = (
            self.host_name,
            self.service_instance_id,
            f"package {self.engine_package}" if self.engine_package else "",
        )
        return ", ".join(part for part in parts if part)


def new_mark(
    text: str, at: str, *, host: str, engine: str, package: str, author: str, now: datetime | None = None
) -> Mark:
    """A mark to be stored, checked.

    Args:
        text: What happened, in one line.
        at: When: ISO 8601 (UTC where it names no zone), `now`, or `-15m`.
        host, engine, package: What it is about; '' is every one.
        author: Who notes it.
        now: Nothing is noted that is much later.

    Raises:
        CallError: a text that cannot stand in a line, no instant, or one more than a day ahead.
    """
    try:
        when = datetime.fromisoformat(f"{instant(at)[:23]}+00:00")
    except (ValueError, OverflowError) as wrong:
        raise CallError(f"--at {shortened(at)}: {wrong}") from wrong
    if when > (now or datetime.now(UTC)) + AHEAD_MAX:
        raise CallError(f"--at {shortened(at)} is more than a day ahead: a mark says what happened")
    return Mark(
        annotation_id=uuid.uuid4().hex,
        at=when,
        text=one_line("the text", text, TEXT_MAX),
        host_name=one_line("--host", host, NAME_MAX, may_be_empty=True),
        service_instance_id=one_line("--engine", engine, NAME_MAX, may_be_empty=True),
        engine_package=one_line("--package", package, NAME_MAX, may_be_empty=True),
        author=one_line("--author", author, NAME_MAX, may_be_empty=True),
    )


def one_line(what: str, text: str, longest: int, *, may_be_empty: bool = False) -> str:
    """A text that can stand in one line of a terminal and a chart, its ends trimmed.

    Raises:
        CallError: it cannot, or is empty or too long.
    """
    trimmed = text.strip()
    if not trimmed and not may_be_empty:
        raise CallError(f"{what} is empty: say in one line what happened")
    if odd := next((one for one in trimmed if unicodedata.category(one) in ("Cc", "Cf", "Cs", "Zl", "Zp")), None):
        raise CallError(f"{what} has a character that cannot be shown, U+{ord(odd):04X}: write it in one line of text")
    if len(trimmed) > longest:
        raise CallError(f"{what} has {len(trimmed)} characters: at most {longest} fit")
    return trimmed


def shortened(text: str) -> str:
    """Text of a wrong call as its error quotes it."""
    return repr(text if len(text) <= 40 else f"{text[:40]}…")


def store_mark(rows_url: str, mark: Mark, clickhouse_url: str = "") -> None:
    """Store a mark.

    Args:
        rows_url: The collector's HTTP port.
        mark: What to store.
        clickhouse_url: Where it has to be stored; '' is wherever that collector stores.

    Raises:
        CallError, OtherStoreError, RefusedError, UnreachableError: as `store_rows`.
    """
    row = mark._asdict() | {"at": written(mark.at), "made_at": written(datetime.now(UTC))}
    store_rows(rows_url, TABLE, [row], beside=clickhouse_url)


def withdraw_mark(rows_url: str, mark: Mark, author: str, clickhouse_url: str) -> None:
    """Take a mark back: a row like it, without its text, says so.

    Raises:
        CallError, OtherStoreError, RefusedError, UnreachableError: as `store_rows`.
    """
    store_mark(rows_url, mark._replace(text=WITHDRAWN, author=author), clickhouse_url)


def the_mark(wanted: str, marks: Sequence[Mark]) -> Mark:
    """The one mark whose id begins so.

    Raises:
        CallError: none does, or several do.
    """
    fitting = [mark for mark in marks if wanted and mark.annotation_id.startswith(wanted)]
    if len(fitting) != 1:
        how_many = f"{len(fitting)} marks have" if fitting else "no mark has"
        raise CallError(
            f"{how_many} an id that begins with {shortened(wanted)}: `tachograph annotate --list` shows ids"
        )
    return fitting[0]


def written(moment: datetime) -> str:
    """An instant as the table keeps it, to the millisecond."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds")


def mark_of(row: Mapping[str, Any]) -> Mark:
    """A row of the query `annotations`."""
    at: datetime = row["at"]
    known = {name: row[name] for name in Mark._fields}
    return Mark(**known | {"at": at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)})
