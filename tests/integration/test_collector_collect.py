"""`tachograph collect` in a process of its own: its addresses, its end, a taken port, a second start."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from collector.data_dir import DataDirError
from collector.errors import CollectorError
from collector.service import Collector, CollectorSettings
from tests.fixtures.contract_cases import SpanCase, request_of
from tests.fixtures.doors import PROTOBUF
from tests.fixtures.ports import free_ports

ROOT = Path(__file__).parents[2]
PORTS = ("OTLP_GRPC_PORT", "OTLP_HTTP_PORT", "CLICKHOUSE_PORT")


def port_settings() -> dict[str, str]:
    return {f"TACHOGRAPH_{name}": str(port) for name, port in zip(PORTS, free_ports(len(PORTS)), strict=True)}


def started(data_dir: Path, ports: dict[str, str]) -> subprocess.Popen[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TACHOGRAPH_", "OTEL_"))}
    return subprocess.Popen(
        [sys.executable, "-m", "tachograph", "collect"],
        env=kept | ports | {"TACHOGRAPH_DATA_DIR": str(data_dir), "PYTHONPATH": str(ROOT)},
        cwd=ROOT,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


@contextmanager
def collecting(data_dir: Path, ports: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    """A collector that answers; killed at the end if it still runs."""
    with started(data_dir, ports) as process:
        try:
            wait_until_healthy(process, f"http://127.0.0.1:{ports['TACHOGRAPH_OTLP_HTTP_PORT']}/healthz")
            yield process
        finally:
            process.kill()


def wait_until_healthy(process: subprocess.Popen[str], url: str) -> None:
    deadline = time.monotonic() + 180
    while time.monotonic() < deadline:
        assert process.poll() is None, process.communicate()[0]
        try:
            if httpx.get(url, timeout=1).status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.05)
    pytest.fail("the collector did not answer within three minutes")


def wait_until_stored(ports: dict[str, str], executions: int) -> None:
    """An acknowledgement means on disk: they are in the store a little later."""
    url = f"http://127.0.0.1:{ports['TACHOGRAPH_CLICKHOUSE_PORT']}/?database=tachograph"
    deadline = time.monotonic() + 120
    while (found := httpx.post(url, content="SELECT count() FROM graph_executions").text.strip()) != str(executions):
        assert time.monotonic() < deadline, f"{found} executions stored, not {executions}"
        time.sleep(0.02)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_collects_tells_its_addresses_and_ends_in_time(tmp_path: Path, number: signal.Signals) -> None:
    ports = port_settings()
    with collecting(tmp_path, ports) as process:
        traces = f"http://127.0.0.1:{ports['TACHOGRAPH_OTLP_HTTP_PORT']}/v1/traces"
        assert httpx.post(traces, content=request_of([SpanCase("one")]), headers=PROTOBUF).status_code == 200
        wait_until_stored(ports, 1)
        began = time.monotonic()
        process.send_signal(number)
        said = process.communicate(timeout=60)[0]
        assert time.monotonic() - began < 10, "a container is given so long"
    assert process.returncode == 0
    assert all(port in said for port in ports.values())
    assert "Traceback" not in said
    left = ["backup-links", "clickhouse", "clickhouse.xml", "control.key", "spool"]
    assert sorted(path.name for path in tmp_path.iterdir()) == left


def test_a_second_start_finds_the_data_of_the_first(tmp_path: Path) -> None:
    ports = port_settings()
    traces = f"http://127.0.0.1:{ports['TACHOGRAPH_OTLP_HTTP_PORT']}/v1/traces"
    for _ in range(2):
        # The same bytes each time: stored once, over a restart as well.
        with collecting(tmp_path, ports) as process:
            assert httpx.post(traces, content=request_of([SpanCase("one")]), headers=PROTOBUF).status_code == 200
            wait_until_stored(ports, 1)
            process.terminate()
            process.wait(60)


@pytest.mark.parametrize("name", PORTS)
def test_a_taken_port_is_one_line_before_anything_starts(tmp_path: Path, name: str) -> None:
    setting = f"TACHOGRAPH_{name}"
    ports = port_settings()
    with socket.create_server(("127.0.0.1", int(ports[setting]))), started(tmp_path / "data", ports) as process:
        said = process.communicate(timeout=180)[0].strip()
    assert process.returncode == 2
    assert len(said.splitlines()) == 1, said
    assert f"port {ports[setting]}" in said
    assert setting in said
    assert not list(tmp_path.iterdir())


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "a cluster of no server": ({"clickhouse_cluster": "fleet"}, "TACHOGRAPH_CLICKHOUSE_CLUSTER"),
    "a server's bound": ({"clickhouse_url": "http://127.0.0.1:9", "store_bytes_max": 1}, "TACHOGRAPH_STORE_BYTES_MAX"),
    "no URL": ({"clickhouse_url": "127.0.0.1"}, "is no ClickHouse URL"),
    "no such table": ({"retention": "no_such=7"}, "no_such"),
    "a name that the engine cannot open": ({}, "has one of"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_start_with_a_wrong_setting_leaves_nothing_behind(tmp_path: Path, wrong: str) -> None:
    settings, said = WRONG[wrong]
    data_dir = tmp_path / ("data" if settings else "d?ta")
    with pytest.raises(CollectorError, match=said) as told, Collector(CollectorSettings(data_dir, **settings)):
        pass
    assert told.value.exit_code == 2
    assert not data_dir.exists()


def test_a_data_directory_that_cannot_be_written_is_a_wrong_setting(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")
    with pytest.raises(DataDirError), Collector(CollectorSettings(tmp_path / "data")):
        pass


def test_a_held_data_directory_is_one_line(tmp_path: Path) -> None:
    """Ours, and not the engine's own beside it."""
    held_by = port_settings()
    with collecting(tmp_path, held_by) as running:
        wait_until_healthy(running, f"http://127.0.0.1:{held_by['TACHOGRAPH_OTLP_HTTP_PORT']}/readyz")
        second = started(tmp_path, port_settings())
        said, _ = second.communicate(timeout=180)
    assert second.returncode == 1
    (line,) = said.splitlines()
    assert line.startswith(f"tachograph: {tmp_path}/spool is held by another process (a collector that still runs?): ")
