"""`tachograph up`, as a user starts it: within two minutes a stuck cell is flagged, by query and on the page."""

import fcntl
import json
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.driven import CHROMIUM, browser
from tests.fixtures.running import ROOT, Addresses, free_addresses, tachograph, wait_until_answering

FLAGGED_WITHIN_S = 120.0
ENDS_WITHIN_S = 5.0
"""Where it starts within ten seconds. On a machine so slow that it does not, half of what the start took."""
WARM_EXECUTIONS = 200


def start(addresses: Addresses, cwd: Path = ROOT) -> "subprocess.Popen[str]":
    """`tachograph up`, in a group of its own as a shell would start it."""
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "tachograph", "up"],
        cwd=cwd,
        env=addresses.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def end(process: "subprocess.Popen[str]") -> tuple[float, str]:
    """Ctrl-C; how long it took, and all it said."""
    began = time.monotonic()
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=60)
    return time.monotonic() - began, said


def stuck_hosts(addresses: Addresses) -> set[str]:
    outcome = tachograph(addresses, "query", "stuck_plain", "--format", "json")
    if outcome.returncode:  # The store is not there yet.
        return set()
    return {row["host_name"] for row in json.loads(outcome.stdout)}


def stored(addresses: Addresses) -> int:
    outcome = tachograph(addresses, "query", "engines", "--format", "json")
    if outcome.returncode:  # The store is not there yet: pages answer before.
        return 0
    return sum(int(row["executions"]) for row in json.loads(outcome.stdout))


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Addresses, "subprocess.Popen[str]"]]:
    addresses = free_addresses(tmp_path_factory.mktemp("up"))
    process = start(addresses)
    try:
        wait_until_answering(f"http://127.0.0.1:{addresses.dashboard_port}/_stcore/health", process)
        yield addresses, process
    finally:
        end(process)


def test_the_fooled_engine_is_flagged_and_the_corrected_one_is_not(
    running: tuple[Addresses, "subprocess.Popen[str]"],
) -> None:
    addresses, process = running
    deadline = time.monotonic() + FLAGGED_WITHIN_S
    while not (hosts := stuck_hosts(addresses)) and time.monotonic() < deadline:
        assert process.poll() is None
        time.sleep(2)
    assert hosts == {"demo-fooled"}


@pytest.mark.skipif(not CHROMIUM.exists(), reason=f"no {CHROMIUM}: make test installs it on Debian as root")
def test_the_flag_is_seen_on_the_page(running: tuple[Addresses, "subprocess.Popen[str]"]) -> None:
    addresses, _ = running
    with browser() as chromium:
        page = chromium.new_page()
        page.goto(f"http://127.0.0.1:{addresses.dashboard_port}/")
        page.get_by_text("1 stuck in plain decode").wait_for(timeout=FLAGGED_WITHIN_S * 1000)
        stuck = page.get_by_role("table").inner_text()
    assert "demo-fooled" in stuck
    assert "demo-corrected" not in stuck


def test_ctrl_c_ends_all_of_it_and_a_second_start_finds_the_data(tmp_path: Path) -> None:
    addresses, began = free_addresses(tmp_path), time.monotonic()
    process = start(addresses)
    wait_until_answering(f"http://127.0.0.1:{addresses.dashboard_port}/_stcore/health", process)
    within_s = max(ENDS_WITHIN_S, (time.monotonic() - began) / 2)
    deadline = time.monotonic() + FLAGGED_WITHIN_S
    # Once it has stored some: the first insert of all takes seconds, in which an engine that ends gets no answer.
    while (before := stored(addresses)) < WARM_EXECUTIONS and time.monotonic() < deadline:
        time.sleep(0.5)
    took_s, said = end(process)
    assert process.returncode == 0, said
    assert f"http://127.0.0.1:{addresses.dashboard_port}" in said
    for engine in ("engine-fooled", "engine-corrected"):
        last = (tmp_path / "logs" / f"{engine}.log").read_text().splitlines()[-1]
        assert re.fullmatch(r"[\d,]+ executions sent", last), "engines end before what they send to"
    for port in addresses[1:]:
        with pytest.raises(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port)):
            pass

    again = start(addresses)
    wait_until_answering(f"http://127.0.0.1:{addresses.dashboard_port}/_stcore/health", again)
    deadline = time.monotonic() + FLAGGED_WITHIN_S
    while (found := stored(addresses)) < before and time.monotonic() < deadline:
        time.sleep(0.5)
    took_again_s, said = end(again)
    assert found >= before > 0
    assert min(took_s, took_again_s) < within_s, said


@pytest.mark.parametrize("name", ["otlp_grpc_port", "otlp_http_port", "clickhouse_port", "dashboard_port"])
def test_a_taken_port_is_one_line_before_anything_has_started(tmp_path: Path, name: str) -> None:
    addresses = free_addresses(tmp_path / "data")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        addresses = addresses._replace(**{name: taken.getsockname()[1]})
        outcome = tachograph(addresses, "up")
    assert outcome.returncode == 2, "as collect says it"
    assert (outcome.stdout, len(outcome.stderr.splitlines())) == ("", 1)
    assert f"port {getattr(addresses, name)}" in outcome.stderr
    assert f"TACHOGRAPH_{name.upper()}" in outcome.stderr
    assert not addresses.data_dir.exists()


def test_a_wrong_setting_of_its_collector_is_told_as_collect_tells_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ordinary = Addresses.environment
    wrong = {"TACHOGRAPH_RETENTION": "nonsense=3"}
    monkeypatch.setattr(Addresses, "environment", lambda addresses: ordinary(addresses) | wrong)
    by_itself, within_up = (tachograph(free_addresses(tmp_path / command), command) for command in ("collect", "up"))
    assert (by_itself.returncode, within_up.returncode) == (2, 2)
    assert within_up.stderr == by_itself.stderr
    assert "nonsense" in within_up.stderr
    assert within_up.stderr.count("\n") == 1


def test_a_second_up_leaves_the_first_ones_data_alone(tmp_path: Path) -> None:
    addresses = free_addresses(tmp_path)
    (tmp_path / "up.lock").touch()
    with (tmp_path / "up.lock").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        outcome = tachograph(addresses, "up")
    assert (outcome.returncode, outcome.stdout) == (1, "")
    assert (
        outcome.stderr == f"tachograph: another tachograph up runs on {tmp_path}; end it, or set TACHOGRAPH_DATA_DIR\n"
    )


@pytest.mark.skipif(sys.platform != "linux", reason="a child hears of its parent's death on Linux only")
def test_whatever_kills_up_ends_its_parts_too(tmp_path: Path) -> None:
    addresses = free_addresses(tmp_path)
    process = start(addresses)
    wait_until_answering(f"http://127.0.0.1:{addresses.dashboard_port}/_stcore/health", process)
    process.kill()
    process.communicate(timeout=60)
    deadline = time.monotonic() + 60
    while listening(addresses) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert listening(addresses) == []


def listening(addresses: Addresses) -> list[int]:
    """Which of its ports are still served."""
    found = []
    for port in addresses[1:]:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                found.append(port)
    return found


def test_up_stands_wherever_it_is_called_from(tmp_path: Path) -> None:
    (tmp_path / "tachograph").mkdir()  # As in the folder that a clone lies in.
    (tmp_path / "chdb.py").write_text("raise SystemExit('shadowed')")
    addresses = free_addresses(tmp_path / "data")
    process = start(addresses, cwd=tmp_path)
    try:
        wait_until_answering(f"http://127.0.0.1:{addresses.dashboard_port}/_stcore/health", process)
    finally:
        end(process)
    assert process.returncode == 0
