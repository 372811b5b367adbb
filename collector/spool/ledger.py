"""The ledger: for each door, what became of every span. Written in the transactions that it accounts for."""

import sqlite3
from collections import Counter
from datetime import date, timedelta
from typing import Final

from collector.acceptance import Outcome
from collector.spool.records import Ledger

_ADD: Final = f"""
INSERT INTO ledger (door, {", ".join(Ledger._fields)}) VALUES (?, {", ".join("?" * len(Ledger._fields))})
ON CONFLICT (door) DO UPDATE SET {", ".join(f"{name} = {name} + excluded.{name}" for name in Ledger._fields)}
"""  # noqa: S608 -- names of our own fields
_READ: Final = f"SELECT door, {', '.join(Ledger._fields)} FROM ledger ORDER BY door"  # noqa: S608 -- likewise


_ADD_TO_DAY: Final = """
INSERT INTO stored_by_day (received_day, stored) VALUES (?, ?)
ON CONFLICT (received_day) DO UPDATE SET stored = stored + excluded.stored
"""
_DAY_MS: Final = 86_400_000
_DAYS_KEPT: Final = 60
"""Twice as many as ClickHouse keeps executions for."""


class Entries:
    """Changes to the ledger, gathered for one transaction. Every method keeps both sides of the sum equal."""

    def __init__(self) -> None:
        self._changes: Counter[tuple[str, str]] = Counter()
        self._stored: Counter[int] = Counter()

    def received(self, door: str, spans: int) -> None:
        """New; they wait."""
        self._move(door, spans, "received", "pending")

    def received_again(self, door: str, spans: int) -> None:
        """In a request that came before."""
        self._move(door, spans, "received", "deduplicated")

    def settled(self, door: str, spans: int, outcome: Outcome, received_unix_ms: int) -> None:
        """They waited, and this became of them."""
        if outcome.duplicate:
            self._add(door, "deduplicated", spans)
        else:
            self._add(door, "stored", outcome.stored)
            self._stored[received_unix_ms // _DAY_MS] += outcome.stored
            self._add(door, "deduplicated", outcome.deduplicated)
            self._add(door, "other_spans", outcome.other_spans)
            self._add(door, "refused", spans - outcome.stored - outcome.deduplicated - outcome.other_spans)
        self._add(door, "pending", -spans)

    def set_aside(self, door: str, spans: int) -> None:
        """They waited, and cannot be stored."""
        self._add(door, "pending", -spans)
        self._add(door, "set_aside", spans)

    def tried_again(self, door: str, spans: int) -> None:
        """They were set aside, and wait again."""
        self.set_aside(door, -spans)

    def write(self, connection: sqlite3.Connection) -> None:
        """Add all of it to what the ledger says."""
        for door in {door for door, _ in self._changes}:
            connection.execute(_ADD, (door, *(self._changes[door, name] for name in Ledger._fields)))
        for day, stored in self._stored.items():
            connection.execute(_ADD_TO_DAY, (day, stored))
        if self._stored:
            connection.execute(
                "DELETE FROM stored_by_day WHERE received_day < (SELECT max(received_day) FROM stored_by_day) - ?",
                (_DAYS_KEPT,),
            )

    def _move(self, door: str, spans: int, *names: str) -> None:
        for name in names:
            self._add(door, name, spans)

    def _add(self, door: str, name: str, spans: int) -> None:
        self._changes[door, name] += spans


def read_stored_by_day(connection: sqlite3.Connection) -> dict[date, int]:
    """Executions stored, by the day (UTC) they were received on; of the last 60 days."""
    rows = connection.execute("SELECT received_day, stored FROM stored_by_day ORDER BY received_day")
    return {date(1970, 1, 1) + timedelta(days=day): stored for day, stored in rows}


def read_ledger(connection: sqlite3.Connection) -> dict[str, Ledger]:
    """The ledger of each door that took anything."""
    return {door: Ledger(*counts) for door, *counts in connection.execute(_READ)}
