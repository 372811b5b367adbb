"""While a backup is made the spool rests: what comes in is answered, waits, and is stored afterwards."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from collector.acceptance import StoreUnavailableError
from collector.backup.making import Source, make_backup
from collector.backup.manifest import BackupError
from collector.spool.drain import DrainLimits
from collector.writer import WriterLimits
from tests.fixtures.fake_store import FakeStore, request, writing
from tests.fixtures.senders import eventually


def test_what_comes_in_meanwhile_is_answered_at_once_and_stored_afterwards(tmp_path: Path) -> None:
    store = FakeStore()
    patient = WriterLimits(drain=DrainLimits(gather_s=0.0, answer_within_s=60.0))
    with writing(store, tmp_path, patient) as written:
        with written.writer.resting():
            assert written.writer.accept(request(1), "grpc").result(10).stored == 1
            assert store.stored == []
            with closing(sqlite3.connect(written.spool.file)) as beside:
                assert beside.execute("SELECT count(*) FROM requests").fetchone() == (1,)
        eventually(lambda: len(store.stored) == 1)
        assert written.writer.accept(request(2), "grpc").result(10).stored == 1


def test_an_insert_under_way_is_waited_for_and_not_for_ever(tmp_path: Path) -> None:
    store = FakeStore()
    with writing(store, tmp_path) as written:
        store.gate.clear()
        written.writer.accept(request(1), "grpc")
        eventually(store.inserting.is_set)
        drain = written.writer._drain
        with pytest.raises(StoreUnavailableError, match="an insert has been under way"), drain.resting(within_s=0.01):
            pass
        store.gate.set()
        with drain.resting():
            assert len(store.stored) == 1


def test_where_a_backup_may_go_is_looked_at_before_anything_is_done(tmp_path: Path) -> None:
    source = Source(tmp_path, tmp_path / "spool.sqlite", lambda: pytest.fail("nothing rests for it"))
    for place, said in ((Path("here"), "is no absolute path"), (tmp_path, "is there already")):
        with pytest.raises(BackupError, match=said):
            make_backup(None, source, place)  # type: ignore[arg-type]
