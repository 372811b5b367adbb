"""`tachograph demo torch` as a process, into a real collector: one stumble of the host, and what becomes of it."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import clickhouse_connect
import pytest

from tests.fixtures.running import ROOT, Addresses, running_collector, tachograph

STUMBLE = "60ms@2s"
SECONDS = 7.0
ATTEMPTS = 6
"""The engine computes for real, on whatever machine this is and whatever else that does. A run in which other work has
made the host stumble more than the test does says nothing about cost models; a model that is wrong is wrong in each."""
PLAIN_SHARES = """
    SELECT
        sumIf(graph_wall_time_ns, is_plain AND started_at < stumble) / sumIf(graph_wall_time_ns, started_at < stumble),
        sumIf(graph_wall_time_ns, is_plain AND started_at >= stumble) / sumIf(graph_wall_time_ns, started_at >= stumble)
    FROM
    (
        SELECT *, graph_kind = 'plain_decode' AS is_plain, fromUnixTimestamp64Nano({began_unix_ns:Int64}) AS stumble
        FROM graph_executions
        WHERE cell_id = {cell:String} AND graph_purpose = 'ordinary' AND graph_kind IN ('plain_decode', 'speculative')
    )"""


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Addresses]:
    with running_collector(tmp_path_factory.mktemp("collected")) as addresses:
        yield addresses


def demo(addresses: Addresses, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return tachograph(addresses, "demo", "torch", *arguments, timeout_s=180)


def runs(addresses: Addresses, cost_model: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Runs with one stumble, all of whose executions the collector has: their cells and summaries."""
    for attempt in range(ATTEMPTS):
        cell = f"{cost_model}-{attempt}"
        asked = ("--cost-model", cost_model, "--host-delay", STUMBLE, "--seconds", str(SECONDS), "--cell", cell)
        done = demo(addresses, *asked, "--json")
        assert done.returncode == 0, done.stderr
        summary: dict[str, Any] = json.loads(done.stdout)
        assert summary["cost_model"] == cost_model
        if summary["host_delays"] and not summary["lost"]:
            yield cell, summary


def rows(addresses: Addresses, name: str, cell: str) -> list[dict[str, Any]]:
    answer = tachograph(addresses, "query", name, "--param", "from=-1h", "--param", f"cell={cell}", "--format", "json")
    assert answer.returncode == 0, answer.stderr
    found: list[dict[str, Any]] = json.loads(answer.stdout)
    return found


def plain_shares(addresses: Addresses, cell: str, summary: dict[str, Any]) -> tuple[float, float]:
    """Of the ordinary decoding before and after the stumble, the share that was plain."""
    began_unix_ns = summary["host_delays"][0]["began_unix_ns"]
    client = clickhouse_connect.get_client(dsn=addresses.clickhouse_url)
    try:
        answer = client.query(PLAIN_SHARES, parameters={"cell": cell, "began_unix_ns": began_unix_ns})
    finally:
        client.close()
    before, after = answer.first_row
    return before, after


def test_one_stumble_leaves_the_fooled_engine_stuck_in_plain(collector: Addresses) -> None:
    seen = []
    for cell, summary in runs(collector, "exposed_mean"):
        stuck = rows(collector, "stuck_plain", cell)
        before, after = plain_shares(collector, cell, summary)
        seen.append((before, after, stuck, summary))
        if stuck and before < 0.25 and after > 0.6:
            assert stuck[0]["inflated"]
            assert stuck[0]["scheduler_cost_model"] == "exposed_mean"
            assert stuck[0]["plain_fraction"] == pytest.approx(summary["plain_fraction"], abs=1e-6)
            return
    pytest.fail(f"never stuck from the stumble on: {seen}")


def test_the_same_stumble_does_not_hold_the_corrected_engine_up(collector: Addresses) -> None:
    seen = []
    for cell, summary in runs(collector, "drained_share"):
        stuck = rows(collector, "stuck_plain", cell)
        (stored,) = rows(collector, "cells", cell)
        before, after = plain_shares(collector, cell, summary)
        seen.append((before, after, stuck, summary))
        if not stuck and before < 0.25 and after < 0.25:
            assert stored["speculative_s"] > SECONDS / 2
            return
    pytest.fail(f"stuck, or nearly, each time: {seen}")


def test_without_torch_one_line_says_what_to_do(tmp_path: Path) -> None:
    hidden = "import sys; sys.modules['torch'] = None; import tachograph; sys.argv = ['tachograph', *sys.argv[1:]]; "
    done = subprocess.run(
        [sys.executable, "-c", hidden + "tachograph.main()", "demo", "torch"],
        cwd=ROOT,
        env=Addresses(tmp_path, 1, 1, 1, 1).environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("tachograph: the demo engine needs PyTorch")
    assert line.endswith("pip install torch")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--host-delay", "60ms"], "--host-delay '60ms': write it as 60ms@10s"),
        (["--cost-model", "mean"], "no cost model is called 'mean'"),
        (["--otlp-endpoint", "nowhere"], "'nowhere' is no OTLP endpoint"),
    ],
)
def test_wrong_options_are_one_line(tmp_path: Path, arguments: list[str], said: str) -> None:
    done = demo(Addresses(tmp_path, 1, 1, 1, 1), *arguments)
    assert done.returncode != 0
    assert len(done.stderr.splitlines()) == 1
    assert said in done.stderr
