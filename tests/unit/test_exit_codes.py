"""One mistake has one exit code, whichever command meets it, and README.md names them all."""

import errno
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import tachograph  # every room's errors
from collector.data_dir import DataDirError, check_data_dir
from collector.errors import CollectorError
from collector.ports import PortTakenError
from collector.spool.database import SpoolError, hold, spool_file
from collector.store.clickhouse import StoreError, open_store
from dashboards import errors as of_dashboards
from engine_hooks.commands import standard_output
from engine_hooks.errors import EngineHooksError
from queries.alerts.delivery.errors import NotKeptError
from queries.alerts.delivery.kept import write
from queries.alerts.delivery.silences import Silence
from queries.alerts.errors import AlertStateError, UnwritableError
from queries.alerts.memory import Memory
from queries.errors import QueriesError

README = Path(tachograph.__file__).with_name("README.md")
ROOTS = (CollectorError, EngineHooksError, QueriesError, of_dashboards.DashboardsError)


def with_kinds(error: type[Exception]) -> Iterator[type[Exception]]:
    yield error
    for kind in error.__subclasses__():
        yield from with_kinds(kind)


def in_readme() -> set[int]:
    rows = re.findall(r"^\| (\d[\d, ]*) \|", README.read_text(), re.MULTILINE)
    return {int(code) for row in rows for code in row.split(",")}


def test_the_readme_has_every_exit_code() -> None:
    of_errors = {getattr(error, "exit_code", 1) for root in ROOTS for error in with_kinds(root)}
    assert in_readme() == of_errors | {0, 10, standard_output.EXIT_CODE, 130}


def test_a_port_that_is_taken_is_a_wrong_setting_to_every_command() -> None:
    assert (PortTakenError.exit_code, of_dashboards.PortTakenError.exit_code) == (2, 2)


@pytest.mark.parametrize(("below", "why"), [("", "it is no directory"), ("in/it", "Not a directory")])
def test_a_data_directory_that_cannot_be_written_is_a_wrong_setting(tmp_path: Path, below: str, why: str) -> None:
    (tmp_path / "file").touch()
    data_dir = tmp_path / "file" / below
    with pytest.raises(
        DataDirError, match=rf"^the data directory {data_dir} cannot be written \({why}\): name another"
    ) as told:
        check_data_dir(data_dir)
    assert told.value.exit_code == 2


def test_so_is_a_place_below_it(tmp_path: Path) -> None:
    for place in ("spool", "clickhouse"):
        (tmp_path / place).touch()
    with pytest.raises(SpoolError, match=r"/spool cannot be written \(.+\): name another") as not_held:
        hold(spool_file(tmp_path))
    with pytest.raises(StoreError, match=r"/clickhouse cannot be written \(.+\): name another") as not_opened:
        open_store(tmp_path)
    assert (not_held.value.exit_code, not_opened.value.exit_code) == (2, 2)


@pytest.mark.parametrize("below", ["", "in/it"])
def test_so_it_is_to_those_who_keep_alerts(tmp_path: Path, below: str) -> None:
    (tmp_path / "file").touch()
    data_dir = tmp_path / "file" / below
    with pytest.raises(UnwritableError, match=rf"^{data_dir} cannot be written \(.+\): name another") as not_begun:
        Memory(data_dir)
    with pytest.raises(NotKeptError, match=rf"^{data_dir} cannot be written \(.+\): name another") as not_kept:
        write(data_dir / "kept.json", Silence.model_construct())
    assert (not_begun.value.exit_code, not_kept.value.exit_code) == (2, 2)


def test_a_data_directory_is_made_and_nothing_is_left_in_it(tmp_path: Path) -> None:
    check_data_dir(tmp_path / "made" / "here")
    check_data_dir(tmp_path / "made" / "here")
    assert list((tmp_path / "made" / "here").iterdir()) == []


def test_a_full_disk_is_no_wrong_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "mkdir", full)
    check_data_dir(tmp_path / "data")
    with pytest.raises(SpoolError) as not_held:
        hold(spool_file(tmp_path / "data"))
    with pytest.raises(StoreError) as not_opened:
        open_store(tmp_path / "data")
    assert (not_held.value.exit_code, not_opened.value.exit_code) == (1, 1)
    with pytest.raises(AlertStateError) as not_begun:
        Memory(tmp_path / "data")
    with pytest.raises(NotKeptError) as not_kept:
        write(tmp_path / "data" / "kept.json", Silence.model_construct())
    assert (not_begun.value.exit_code, not_kept.value.exit_code) == (1, 1)
