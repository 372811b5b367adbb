"""A disk that is full: refusals, no crash, no corrupt spool, and full recovery. On a small file system of its own."""

import errno
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest
from structlog.testing import capture_logs

from collector.acceptance import Outcome, QueueFullError
from collector.decoding.wire import request_id_of
from collector.disk_space import free_bytes_in
from collector.doctor.check import Verdict
from collector.doctor.door_checks import check_disk
from collector.spool.database import bytes_on_disk, log_bytes, spool_file
from collector.spool.spool import Spool
from collector.telemetry.metrics import CollectorMetrics
from collector.writer import Writer, WriterLimits
from tests.fixtures.contract_cases import SpanCase, request_of
from tests.fixtures.doors import PROTOBUF, Doors, serving
from tests.fixtures.fake_store import QUICK, ROOMY, FakeStore, Written, closed_spool, request, writing
from tests.fixtures.senders import eventually

DISK_BYTES = 32 * 1024 * 1024
LIMITS = WriterLimits(drain=QUICK._replace(answer_within_s=0.0))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A tmpfs of 32 MiB, for as long as the test lasts."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(disk)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"a small file system cannot be mounted here: {mounted.stderr.decode().strip()}")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


def large(number: int) -> bytes:
    """A request of 400 kB."""
    return request_of([SpanCase(str(number), attributes={"graph.sequence": number, "cell.id": "x" * 400_000})])


def fill(written: Written, first: int) -> list[bytes]:
    """Send until the disk is full; what was acknowledged."""
    taken: list[bytes] = []

    def send() -> None:
        for number in range(first, first + 1_000):
            body = large(number)
            assert written.writer.accept(body, "http").result(30).stored == 1
            taken.append(body)

    with pytest.raises(QueueFullError, match="the disk of the spool is full") as full:
        send()
    assert full.value.retry_after_s > 0
    assert len(taken) > 10
    return taken


def retried(written: Written, body: bytes) -> bytes:
    """Send until there is room, as senders do."""

    def taken() -> bool:
        try:
            return written.writer.accept(body, "http").result(30) == Outcome(1)
        except QueueFullError:
            return False

    eventually(taken)
    return body


def fill_by_another(file: Path) -> None:
    with file.open("wb", buffering=0) as opened, pytest.raises(OSError, match="No space"):
        opened.writelines(bytes(4096) for _ in range(DISK_BYTES))


def leave_free(disk: Path, free: int) -> Path:
    """Let another file take what the disk has, but for so many bytes."""
    hog = disk / "hog"
    hog.write_bytes(bytes(free_bytes_in(disk) - free))
    return hog


def get(doors: Doors, path: str) -> httpx.Response:
    return httpx.get(f"http://127.0.0.1:{doors.http_port}{path}", timeout=60)


def sound(data_dir: Path) -> bool:
    with closing(sqlite3.connect(spool_file(data_dir))) as beside:
        return bool(beside.execute("PRAGMA integrity_check").fetchone() == ("ok",))


def test_full_then_drained_then_full_again(small_disk: Path) -> None:
    store = FakeStore()
    taken: list[bytes] = []
    with writing(store, small_disk, LIMITS) as written:
        for turn in range(2):
            store.gate.clear()
            taken += fill(written, 10_000 * turn)
            refused = written.metric("requests_turned_away_total", reason="disk_full")
            assert refused > turn
            assert sound(small_disk)
            store.gate.set()
            eventually(lambda: not written.spool.state().pending_requests)
            taken.append(retried(written, request(turn)))
        eventually(lambda: not written.spool.state().pending_requests)
        assert written.spool.ledger()["http"].adds_up
    assert store.stored == [request_id_of(body) for body in taken]


def test_full_stopped_and_opened_again(small_disk: Path) -> None:
    store = FakeStore()
    store.gate.clear()
    with writing(store, small_disk, LIMITS) as written:
        taken = fill(written, 0)
        store.gate.set()
        written.writer.stop()
    with closing(closed_spool(small_disk)) as spool:
        assert spool.ledger()["http"].received == len(taken)
    assert sound(small_disk)


def test_filled_by_another_it_keeps_what_it_has_and_goes_on_when_there_is_room(small_disk: Path) -> None:
    store = FakeStore()
    store.gate.clear()
    with writing(store, small_disk, LIMITS) as written:
        taken = [large(number) for number in range(10)]
        for body in taken:
            written.writer.accept(body, "http").result(30)
        hog = small_disk / "hog"
        fill_by_another(hog)
        with pytest.raises(QueueFullError):
            written.writer.accept(large(99), "http").result(30)
        store.gate.set()
        eventually(lambda: "the disk" in written.writer.trouble())
        hog.unlink()
        eventually(lambda: not written.spool.state().pending_requests)
        retried(written, large(99))
    assert store.stored == [request_id_of(body) for body in (*taken, large(99))]
    assert sound(small_disk)


def test_room_for_small_requests_only_is_told_everywhere_until_there_is_room_for_large_ones(small_disk: Path) -> None:
    store, metrics = FakeStore(), CollectorMetrics()
    with capture_logs() as logs, closing(Spool(file := spool_file(small_disk), ROOMY)) as spool:
        writer = Writer(spool, store.open, metrics, LIMITS)
        with serving(writer, metrics) as doors:
            store.gate.clear()  # What waits keeps the spool from giving back space of its own.
            assert doors.post(request(0), **PROTOBUF).status_code == 200
            hog = leave_free(small_disk, log_bytes(file) + 1_800_000)
            assert get(doors, "/readyz").status_code == 200
            for number in range(3):
                refused = doors.post(large(number), **PROTOBUF)
                assert (refused.status_code, b"the disk of the spool is full" in refused.content) == (429, True)
            assert doors.post(request(1), **PROTOBUF).status_code == 200
            ready = get(doors, "/readyz")
            assert (ready.status_code, ready.json()["reasons"]) == (503, {"spool": "the disk of the spool is full"})
            check = check_disk(get(doors, "/state").json())
            assert (check.verdict, "senders are turned away" in check.advice) == (Verdict.FAULT, True)
            hog.unlink()
            assert get(doors, "/readyz").status_code == 200
            assert check_disk(get(doors, "/state").json()).verdict is Verdict.WARNING
            assert doors.post(large(0), **PROTOBUF).status_code == 200
            store.gate.set()
    told = [(event["event"], event.get("turned_away")) for event in logs if event["event"].startswith("requests are")]
    assert told == [("requests are turned away", None)] * 3 + [("requests are taken again", 3)]


def test_the_spools_own_log_takes_no_room_from_requests_once_all_is_stored(small_disk: Path) -> None:
    """Bytes that wait in the log to be carried into the file count twice: on a scant disk they are carried at once."""
    store = FakeStore()
    with writing(store, small_disk, LIMITS) as written:
        for number in range(6):
            written.writer.accept(large(number), "http").result(30)
        eventually(lambda: len(store.stored) == 6)
        assert bytes_on_disk(written.spool.file) < 8 * 1024 * 1024
        leave_free(small_disk, 2_500_000)
        assert retried(written, large(9))


@pytest.mark.parametrize(
    "error",
    [sqlite3.OperationalError("database or disk is full"), OSError(errno.ENOSPC, "No space left on device")],
    ids=["the spool's file", "what the driver lays down for the engine"],
)
def test_a_full_disk_is_told_without_a_traceback_whoever_meets_it(tmp_path: Path, error: Exception) -> None:
    store = FakeStore()
    store.faults.append(error)
    with writing(store, tmp_path) as written, capture_logs() as logs:
        assert written.writer.accept(request(1), "http").result(30).stored == 1
        eventually(lambda: written.spool.state().pending_requests == 0)
    (told,) = [log for log in logs if log["event"] == "not storing"]
    assert told["exc_info"] is None
