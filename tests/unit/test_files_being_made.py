"""Files that one process makes and another reads: between any two of the maker's statements the reader finds all or nothing."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from collector.backup.making import _copy_spool
from collector.spool.database import SpoolError, open_for_writing, spool_file
from collector.spool.set_aside import waiting
from queries.alerts.memory import Memory, remembered


@pytest.fixture
def at_each_statement(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], list[object]]:
    """Have something done before each statement of the connection that is opened next; what came of it, errors too."""
    connect = sqlite3.connect

    def arranged(look: Callable[[], object]) -> list[object]:
        found: list[object] = []

        def looked(_statement: str) -> None:
            try:
                found.append(look())
            except Exception as error:
                found.append(error)

        def connected(*args: Any, **options: Any) -> sqlite3.Connection:
            monkeypatch.setattr(sqlite3, "connect", connect)
            connection: sqlite3.Connection = connect(*args, **options)
            connection.set_trace_callback(looked)
            return connection

        monkeypatch.setattr(sqlite3, "connect", connected)
        return found

    return arranged


def test_alerts_being_made_are_no_alerts_yet(
    tmp_path: Path, at_each_statement: Callable[[Callable[[], object]], list[object]]
) -> None:
    found = at_each_statement(lambda: remembered(tmp_path))
    with closing(Memory(tmp_path)):
        assert len(found) >= 5
        assert found == [({}, {})] * len(found)


def test_a_spool_being_made_is_no_spool_yet(
    tmp_path: Path, at_each_statement: Callable[[Callable[[], object]], list[object]]
) -> None:
    file = spool_file(tmp_path)
    file.parent.mkdir(parents=True)
    found = at_each_statement(lambda: waiting(file))
    with closing(open_for_writing(file)):
        assert len(found) >= 8
        assert {f"{type(one).__name__}: {one}" for one in found} == {
            f"{SpoolError.__name__}: there is no spool at {file}: no collector has run with this --data-dir"
        }


def test_a_spool_being_made_is_left_out_of_a_backup(
    tmp_path: Path, at_each_statement: Callable[[Callable[[], object]], list[object]]
) -> None:
    file, copy = spool_file(tmp_path), tmp_path / "copy"
    file.parent.mkdir(parents=True)
    found = at_each_statement(lambda: (_copy_spool(file, copy), copy.exists()))
    with closing(open_for_writing(file)):
        assert found == [(0, False)] * len(found)
        assert len(found) >= 8
    assert (_copy_spool(file, copy), copy.exists()) == (0, True)
