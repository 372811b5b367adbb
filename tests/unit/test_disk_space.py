"""Want of space is told as such, in whatever words it comes; and nothing else is."""

import errno
import os
import sqlite3
from pathlib import Path

import pytest
from clickhouse_connect.driver.exceptions import DatabaseError

from collector import disk_space
from collector.disk_space import NoSpaceError, free_bytes_in, telling_of_space
from collector.errors import CollectorError
from collector.spool.database import spool_error
from engine_hooks.commands.counting import counted

FULL = [
    DatabaseError("Code: 243. DB::Exception: Cannot reserve 1.00 MiB, not enough space. (NOT_ENOUGH_SPACE)"),
    DatabaseError("Code: 75. DB::ErrnoException: Cannot write: , errno: 28, strerror: No space left on device."),
    OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)),
    CollectorError("/d/spool cannot be written (No space left on device): name another --data-dir"),
    spool_error(Path("/d/spool.sqlite"), sqlite3.OperationalError("database or disk is full")),
]
OTHER = [
    DatabaseError("Code: 62. DB::Exception: Syntax error. (SYNTAX_ERROR)"),
    OSError(errno.EACCES, os.strerror(errno.EACCES)),
    CollectorError("port 4317 is taken"),
]


@pytest.mark.parametrize("error", FULL, ids=["reserve", "write", "system", "told", "spool"])
def test_want_of_space_is_one_line(error: Exception) -> None:
    told = r"^no space left in /d: free some, or name another --data-dir$"
    with pytest.raises(NoSpaceError, match=told), telling_of_space(Path("/d")):
        raise error


@pytest.mark.parametrize("error", OTHER, ids=["engine", "system", "told"])
def test_what_is_none_stays_as_it_is(error: Exception) -> None:
    with pytest.raises(type(error)) as raised, telling_of_space(Path("/d")):
        raise error
    assert raised.value is error


def test_on_a_full_disk_every_fault_is_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_space, "free_bytes_in", lambda _: 999)
    with pytest.raises(NoSpaceError), telling_of_space(Path("/d"), least_bytes=1000):
        raise OTHER[0]
    with pytest.raises(DatabaseError), telling_of_space(Path("/d"), least_bytes=999):
        raise OTHER[0]


def test_the_disk_is_asked_of_a_directory_that_is_to_be_made(tmp_path: Path) -> None:
    assert free_bytes_in(tmp_path / "a" / "b") > 0


def test_one_of_a_thing_is_no_plural() -> None:
    assert [counted(number, "row") for number in (0, 1, 2, 1234)] == ["0 rows", "1 row", "2 rows", "1,234 rows"]
