"""`tachograph simulate` as processes: a live engine and a sent cell seen by a query, and quick ends."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from tests.fixtures.running import ROOT, Addresses, running_collector, tachograph
from tests.fixtures.trace_service import trace_service

DEADLINE_S = 180.0


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Addresses]:
    with running_collector(tmp_path_factory.mktemp("collected")) as addresses:
        yield addresses


def live(addresses: Addresses, *arguments: str) -> tuple["subprocess.Popen[str]", float]:
    """A live engine that has said its first line, and seconds until it had: how slow the machine is."""
    began = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", "tachograph", "simulate", "live", *arguments],
        cwd=ROOT,
        env=addresses.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    assert "sending to" in process.stdout.readline()
    return process, time.monotonic() - began


def ended(process: "subprocess.Popen[str]", number: signal.Signals, exit_code: int = 0) -> tuple[float, str]:
    """Seconds until it has ended after a signal by this exit code, and what it said."""
    began = time.monotonic()
    process.send_signal(number)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == exit_code, said
    return time.monotonic() - began, said


def rows(addresses: Addresses, name: str, **parameters: str) -> list[dict[str, Any]]:
    given = [text for key, value in parameters.items() for text in ("--param", f"{key}={value}")]
    answer = tachograph(addresses, "query", name, *given, "--format", "json")
    assert answer.returncode == 0, answer.stderr
    found: list[dict[str, Any]] = json.loads(answer.stdout)
    return found


def test_a_fooled_engine_is_found_stuck_and_a_corrected_one_is_not(collector: Addresses) -> None:
    at = ["--stumble", "1", "--stumble", "1.6", "--stumble", "2.2", "--stumble-rate", "0"]
    fooled, started_s = live(collector, "--cost-model", "exposed_mean", "--host", "fooled", *at)
    corrected, _ = live(collector, "--cost-model", "drained_share", "--host", "corrected", *at)
    deadline = time.monotonic() + DEADLINE_S
    stuck: list[dict[str, Any]] = []
    while not stuck and time.monotonic() < deadline:
        stuck = rows(collector, "stuck_plain", **{"from": "-10m"})
    took_s, said = ended(fooled, signal.SIGINT)
    ended(corrected, signal.SIGTERM)
    assert {row["host_name"] for row in stuck} == {"fooled"}
    assert took_s < max(2.0, 2 * started_s)
    engines: dict[str, dict[str, Any]] = {}
    while time.monotonic() < deadline:  # what was taken is stored soon
        engines = {row["host_name"]: row for row in rows(collector, "engines", **{"from": "-10m"})}
        if f"{int(engines['fooled']['executions']):,} executions sent" in said:
            break
    assert f"{int(engines['fooled']['executions']):,} executions sent" in said
    assert engines["corrected"]["scheduler_cost_model"] == "drained_share"


def test_without_a_collector_it_ends_as_quickly_and_says_what_was_lost(tmp_path: Path) -> None:
    nowhere = Addresses(tmp_path, 1, 1, 1, 1)
    process, started_s = live(nowhere, "--host", "alone")
    assert process.stdout is not None
    assert "do not reach" in process.stdout.readline(), "there is something to send by then"
    took_s, said = ended(process, signal.SIGTERM, exit_code=1)
    assert took_s < max(3.0, 2 * started_s)
    assert "0 executions sent" in said
    assert "{" not in said
    told = said.splitlines()[-1]
    assert told.startswith("tachograph: none of the executions reached http://127.0.0.1:1, ")
    assert told.endswith(" not acknowledged by the end: start a collector there, or set TACHOGRAPH_OTLP_ENDPOINT")


def test_where_a_part_was_lost_it_says_how_much_and_fails(tmp_path: Path) -> None:
    with trace_service() as service:
        process, _ = live(Addresses(tmp_path, 1, 1, 1, 1), "--otlp-endpoint", service.endpoint)
        service.wait_for(1)
        service.refuse_with = grpc.StatusCode.UNAVAILABLE
        assert process.stdout is not None
        assert "do not reach" in process.stdout.readline(), "there is something to send by then"
        _, said = ended(process, signal.SIGTERM, exit_code=1)
        taken = len(service.spans)
    summary, told = said.splitlines()[-2:]
    assert summary.startswith(f"{taken:,} execution")
    assert told.startswith(f"tachograph: a part of the record is missing at {service.endpoint}: of ")
    assert told.endswith(" not acknowledged by the end; see to the collector there")


def test_a_sent_cell_is_stored_whole(collector: Addresses) -> None:
    sent = tachograph(collector, "simulate", "cell", "--model", "idle_gap", "--seconds", "10", "--send", "--json")
    assert sent.returncode == 0, sent.stderr
    summary = json.loads(sent.stdout)
    deadline = time.monotonic() + DEADLINE_S
    found: list[dict[str, Any]] = []
    while not found and time.monotonic() < deadline:
        cells = rows(collector, "cells", **{"from": "-10m"})
        found = [row for row in cells if row["service_instance_id"] == summary["service_instance_id"]]
    assert int(found[0]["executions"]) == summary["executions"]
    assert found[0]["plain_fraction"] == pytest.approx(summary["plain_fraction"])


def test_wrong_names_are_one_line(collector: Addresses) -> None:
    answer = tachograph(collector, "simulate", "scenarios", "--models", "idle_gap", "mean")
    assert answer.returncode == 2
    assert answer.stderr.splitlines() == [
        "tachograph: no cost model is called 'mean'; there are exposed_mean, drained_share, startup_median, idle_gap"
    ]
