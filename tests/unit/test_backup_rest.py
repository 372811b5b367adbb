"""While a backup is made the spool rests: what comes in is answered, waits, and is stored afterwards."""

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from clickhouse_connect.driver.client import Client
from typer.testing import CliRunner

from collector import disk_space
from collector.acceptance import StoreUnavailableError
from collector.backup import putting_back
from collector.backup.making import Source, make_backup
from collector.backup.manifest import BackupError, Manifest
from collector.commands import backup as commands
from collector.commands.schema import schema
from collector.control.giving import Door
from collector.control.orders import Orders
from collector.disk_space import NoSpaceError
from collector.errors import CollectorError
from collector.spool.database import SpoolError, spool_file
from collector.spool.drain import DrainLimits
from collector.store.clickhouse import engine_path
from collector.writer import WriterLimits
from tachograph import application
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
    (tmp_path / "theirs.unfinished").mkdir()
    (tmp_path / "theirs.unfinished" / "thesis.txt").write_text("years of work")
    with pytest.raises(BackupError, match=r"theirs\.unfinished is there, and no unfinished backup"):
        make_backup(None, source, tmp_path / "theirs")  # type: ignore[arg-type]
    assert (tmp_path / "theirs.unfinished" / "thesis.txt").read_text() == "years of work"
    for place, said in (
        (Path("here"), "is no absolute path"),
        (tmp_path, "is there already"),
        (tmp_path / "none" / "b", "is no directory that is there; make it first"),
    ):
        with pytest.raises(BackupError, match=said) as wrong:
            make_backup(None, source, place)  # type: ignore[arg-type]
        assert wrong.value.exit_code == 2


def test_a_disk_that_fills_up_is_named_and_nothing_is_left(tmp_path: Path, clickhouse: Client) -> None:
    @contextmanager
    def full() -> Iterator[None]:
        assert (tmp_path / "backup.unfinished").is_dir()
        raise OSError(errno.ENOSPC, "No space left on device")
        yield

    source = Source(tmp_path, tmp_path / "spool.sqlite", full)
    with pytest.raises(
        BackupError, match=r"/backup cannot be written \(No space left on device\); nothing is left of it"
    ):
        make_backup(clickhouse, source, tmp_path / "backup")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("taking", "said"),
    [(Door.__new__(Door), "the collector goes on with it"), (Orders.__new__(Orders), "no backup was made")],
    ids=["collector", "alone"],
)
def test_ctrl_c_says_what_becomes_of_the_backup(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, taking: Door | Orders, said: str
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(type(taking), "carry_out", interrupted)
    monkeypatch.setattr(commands, "taker", lambda _: nullcontext(taking))
    with pytest.raises(commands.InterruptedBackupError, match=said) as stopped:
        commands.backup(SimpleNamespace(clickhouse_url=""), tmp_path / "backup")
    assert stopped.value.exit_code == 130


def test_a_server_is_neither_backed_up_nor_restored(tmp_path: Path) -> None:
    of_a_server: Any = SimpleNamespace(clickhouse_url="http://db:8123/fleet", data_dir=tmp_path / "data")
    for command in (commands.backup, commands.restore):
        with pytest.raises(
            commands.EmbeddedOnlyError, match=r"^backup and restore serve the embedded store only"
        ) as no:
            command(of_a_server, tmp_path / "backup")
        assert no.value.exit_code == 2
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_spool_is_named_and_not_the_backup(tmp_path: Path, clickhouse: Client) -> None:
    spool = tmp_path / "spool.sqlite"
    spool.write_bytes(bytes(3000) + b"more")
    with pytest.raises(SpoolError, match=r"^the spool .*/spool\.sqlite is damaged \(file is not a database\)"):
        make_backup(clickhouse, Source(tmp_path, spool, nullcontext), tmp_path / "backup")
    assert list(tmp_path.iterdir()) == [spool]


def test_a_backup_that_does_not_fit_is_not_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    backup = tmp_path / "backup"
    backup.mkdir()
    (backup / "store").write_bytes(bytes(1000))
    monkeypatch.setattr(Manifest, "read", lambda _: None)
    monkeypatch.setattr(putting_back, "free_bytes_in", lambda _: 1000 + putting_back._SPARE_BYTES - 1)
    with pytest.raises(
        NoSpaceError, match=r"^no space left in .*/data for the backup .*: it takes 16\.8 MB, and 16\.8 MB"
    ):
        putting_back.put_back(backup, tmp_path / "data")
    assert list(tmp_path.iterdir()) == [backup]


@pytest.mark.parametrize("is_there", [True, False], ids=["into a directory", "into none"])
def test_a_disk_that_fills_up_meanwhile_is_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_there: bool
) -> None:
    """What the engine then says of files that it wrote half is not believed."""
    data_dir = tmp_path / "deep" / "data"
    if is_there:
        data_dir.mkdir(parents=True)

    def half(directory: Path, apart: Path, _: object) -> None:
        (apart / "half").touch()
        monkeypatch.setattr(disk_space, "free_bytes_in", lambda _: 0)
        raise BackupError(f"the backup {directory} is damaged")

    monkeypatch.setattr(Manifest, "read", lambda _: None)
    monkeypatch.setattr(putting_back, "_restore_spool", lambda *_: 0)
    monkeypatch.setattr(putting_back, "_restore", half)
    with pytest.raises(NoSpaceError, match=f"^no space left in {data_dir}: free some"):
        putting_back.put_back(tmp_path / "backup", data_dir)
    assert list(tmp_path.rglob("*")) == ([data_dir.parent, data_dir] if is_there else [])


@pytest.mark.parametrize("place", ["", "store/deep", "link"], ids=["itself", "within", "by a link"])
def test_a_backup_is_not_restored_into_itself(tmp_path: Path, place: str) -> None:
    backup = tmp_path / "backup"
    (backup / "store").mkdir(parents=True)
    (tmp_path / "link").symlink_to(backup)
    before = sorted(tmp_path.rglob("*"))
    into = tmp_path / "link" if place == "link" else backup / place
    with pytest.raises(BackupError, match=r"/backup.* is in the backup .*/backup itself: name another --data-dir$"):
        putting_back.put_back(backup, into)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_store_that_is_there_is_a_wrong_place_to_restore_into(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine_path(tmp_path / "data").mkdir(parents=True)
    (tmp_path / "backup").mkdir()
    monkeypatch.setattr(Manifest, "read", lambda _: None)
    with pytest.raises(BackupError, match=r"is there already: name a --data-dir without a store$") as wrong:
        putting_back.put_back(tmp_path / "backup", tmp_path / "data")
    assert wrong.value.exit_code == 2


@pytest.mark.parametrize("command", ["backup", "restore"])
def test_an_empty_name_is_not_the_current_directory(tmp_path: Path, command: str) -> None:
    called = CliRunner().invoke(application(), [command, ""], env={"TACHOGRAPH_DATA_DIR": str(tmp_path / "data")})
    assert called.exit_code == 2
    assert "it is empty: name a directory" in called.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_backup_is_not_cleared_away_for_its_own_restore(tmp_path: Path) -> None:
    backup = tmp_path / "restoring" / "backup"
    backup.mkdir(parents=True)
    with pytest.raises(BackupError, match=r"is where a restore into .* does its work: move it"):
        putting_back.put_back(backup, tmp_path)
    assert backup.is_dir()


@pytest.mark.parametrize("place", ["clickhouse", "clickhouse/store/b", "spool/b", "backup-links/b"])
def test_a_backup_is_not_made_where_the_store_is_kept(tmp_path: Path, place: str) -> None:
    source = Source(tmp_path / "data", spool_file(tmp_path / "data"), lambda: pytest.fail("nothing rests for it"))
    with pytest.raises(BackupError, match=r"which the store itself is kept in: name a directory apart from it$"):
        make_backup(None, source, tmp_path / "data" / place)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_where_nothing_can_be_written_is_not_told_of_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such file systems say that they have nothing free. Those who run the tests may write everywhere but there."""
    (tmp_path / "backup").mkdir()
    monkeypatch.setattr(Manifest, "read", lambda _: None)
    with pytest.raises(SpoolError, match=r"^/proc/tachograph/spool cannot be written \(.*\): name another --data-dir$"):
        putting_back.put_back(tmp_path / "backup", Path("/proc/tachograph"))


def test_a_server_that_does_not_answer_has_the_exit_code_of_every_command() -> None:
    settings: Any = SimpleNamespace(clickhouse_url="http://127.0.0.1:9/fleet", clickhouse_cluster="")
    with pytest.raises(CollectorError, match=r"^ClickHouse at http://127\.0\.0\.1:9/fleet did not answer: ") as away:
        schema(settings, apply=True)
    assert away.value.exit_code == 3
