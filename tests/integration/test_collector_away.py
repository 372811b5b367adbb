"""A real collector that is killed, and one that is upgraded, under a live engine: nothing is missing afterwards."""

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests.fixtures.running import ROOT, Addresses, free_addresses, tachograph, wait_until_answering

DEADLINE_S = 180.0


@contextmanager
def collecting(addresses: Addresses, ends_by: signal.Signals) -> Iterator[None]:
    """`tachograph collect`, ended by this signal."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tachograph", "collect"],
        cwd=ROOT,
        env=addresses.environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until_answering(f"http://127.0.0.1:{addresses.otlp_http_port}/readyz", process)
        yield
    finally:
        process.send_signal(ends_by)
        process.wait(30)


@contextmanager
def engine(addresses: Addresses, log: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """A live engine that writes into a file what it says."""
    with log.open("wb") as told:
        process = subprocess.Popen(
            [sys.executable, "-u", "-m", "tachograph", "simulate", "live", "--host", "gpu-77"],
            cwd=ROOT,
            env=addresses.environment(),
            stdout=told,
            stderr=subprocess.STDOUT,
        )
    try:
        yield process
    finally:
        process.terminate()
        process.wait(30)


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def rows(addresses: Addresses, name: str) -> list[dict[str, object]]:
    answer = tachograph(addresses, "query", name, "--format", "json")
    assert answer.returncode == 0, answer.stderr
    found: list[dict[str, object]] = json.loads(answer.stdout or "[]")
    return found


def stored(addresses: Addresses) -> tuple[int, ...]:
    """Executions, and different ones."""
    query = "SELECT count(), uniqExact(service_instance_id, graph_sequence) FROM graph_executions FORMAT TSV"
    url = addresses.clickhouse_url.replace("/tachograph", "/?database=tachograph")
    return tuple(map(int, httpx.post(url, content=query).text.split()))


def test_nothing_is_missing_after_a_kill_and_an_upgrade(tmp_path: Path) -> None:
    addresses, log = free_addresses(tmp_path / "data"), tmp_path / "engine.log"
    with engine(addresses, log) as live:
        with collecting(addresses, signal.SIGKILL):
            until(lambda: rows(addresses, "engines"))
        until(lambda: "do not reach" in log.read_text())
        with collecting(addresses, signal.SIGTERM):
            until(lambda: log.read_text().count(" again, after ") == 1)
        until(lambda: log.read_text().count("do not reach") == 2)
        with collecting(addresses, signal.SIGTERM):
            until(lambda: log.read_text().count(" again, after ") == 2)
            live.terminate()
            live.wait(30)
            told = log.read_text()
            ending = re.fullmatch(r"([\d,]+) executions sent(?:, ([\d,]+) lost)?", told.splitlines()[-1])
            assert ending is not None
            # The last may be taken, and its answer come too late for the engine.
            sent, unheard_of = (int((one or "0").replace(",", "")) for one in ending.groups())
            until(lambda: sent <= stored(addresses)[0] <= sent + unheard_of)
            executions, different = stored(addresses)
            assert executions == different
            assert [int(str(row["executions"])) for row in rows(addresses, "engines")] == [executions]
            assert rows(addresses, "sequence_gaps") == []
    for waited in re.findall(r"again, after [\d.]+ s: (\d+) waited and are sent, 0 were lost", told):
        assert int(waited) > 0
    assert told.count("0 were lost") == 2
