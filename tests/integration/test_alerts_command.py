"""`tachograph alerts` as a user runs it, against a collector that an engine sends to."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine_hooks.contract.execution import GraphExecution
from engine_hooks.contract.names import GraphKind
from engine_hooks.recorder.sending import requests_of, sender
from tests.fixtures.query_rows import ENGINE, MS, believing
from tests.fixtures.running import ROOT, Addresses, running_collector, tachograph

S_NS = 1_000_000_000
WITHIN_S = 120.0


def send_stuck_cells(addresses: Addresses, cells: int = 2) -> None:
    """The last cells that are over: a poisoned P128 at their start, and plain decode ever since."""
    start_ns = (time.time_ns() // S_NS // 30 - cells) * 30 * S_NS
    executions = []
    for n in range(30 * cells):
        is_plain = n > 0
        executions.append(
            GraphExecution(
                graph_name="decode" if is_plain else "P128",
                graph_kind=GraphKind.PLAIN_DECODE if is_plain else GraphKind.SPECULATIVE,
                graph_sequence=n,
                graph_gpu_time_ns=(13 if is_plain else 28) * MS,
                graph_wall_time_ns=(980 if is_plain else 61) * MS,
                started_at=start_ns + n * S_NS,
                duration_ns=(980 if is_plain else 61) * MS,
                graph_queue_depth=1 if is_plain else 0,
                batch_lanes=4,
                batch_tokens_emitted=4 if is_plain else 10,
                scheduler_cost_model="exposed_mean",
                **believing({"P128": (34.5 if is_plain else 29.0, 10.0), "decode": (13.0, 4.2)}),
            )
        )
    with sender(addresses.otlp_grpc) as sending:
        for request in requests_of(ENGINE, executions):
            assert sending.send(request.body) == (0, "")


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Addresses]:
    with running_collector(tmp_path_factory.mktemp("alerts")) as addresses:
        send_stuck_cells(addresses)
        yield addresses


def listed(addresses: Addresses) -> dict[str, Any]:
    told = tachograph(addresses, "alerts", "list", "--json")
    if told.returncode == 1 and not told.stdout:  # It has not looked yet.
        return {"alerts": []}
    assert told.returncode == 0, told.stderr
    return dict(json.loads(told.stdout))


def test_a_rule_is_tried_on_stored_data(collector: Addresses) -> None:
    tried = tachograph(collector, "alerts", "test", "StuckInPlain")
    assert tried.returncode == 10, tried.stdout + tried.stderr
    assert "-> firing: node-1 (engine-1) sits in plain decode" in tried.stdout
    before = tachograph(collector, "alerts", "test", "StuckInPlain", "--at", "-1d")
    assert (before.returncode, before.stdout.partition(",")[0]) == (1, "unknown: its query has no rows then")
    future = tachograph(collector, "alerts", "test", "StuckInPlain", "--at", "2099-01-01")
    assert (future.returncode, future.stdout, future.stderr.count("\n")) == (2, "", 1)
    backlog = tachograph(collector, "alerts", "test", "CollectorBacklog")
    assert (backlog.returncode, backlog.stdout) == (0, "CollectorBacklog: clear\n"), backlog.stderr
    silent = tachograph(collector, "alerts", "test", "EngineSilent")
    assert silent.returncode == 0, silent.stderr
    unknown = tachograph(collector, "alerts", "test", "Stuck")
    assert unknown.returncode == 2
    assert "no rule 'Stuck'; there are" in unknown.stderr


def test_the_evaluator_fires_remembers_and_stores_its_history(collector: Addresses, tmp_path: Path) -> None:
    environment = collector.environment() | {"TACHOGRAPH_ALERT_INTERVAL_S": "1"}
    process = subprocess.Popen(
        [sys.executable, "-m", "tachograph", "alerts", "run"],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        deadline = time.monotonic() + WITHIN_S
        while not (found := firing(collector)) and time.monotonic() < deadline:
            assert process.poll() is None, process.communicate()[0]
            time.sleep(1)
        assert "estimate inflation" in found["annotations"]["finding"]
        assert "poisoned by execution 0 of P128" in found["annotations"]["finding"]
        assert "tokens/s lost" in found["annotations"]["finding"]
        changes: list[dict[str, Any]] = []
        while not any(change["finding"] for change in changes) and time.monotonic() < deadline:
            time.sleep(1)
            changes = history(collector)
        assert (changes[-1]["state_before"], changes[-1]["state"]) == ("inactive", "firing")
        assert changes[0]["finding"] == found["annotations"]["finding"]
        second = tachograph(collector, "alerts", "run")
        assert second.returncode == 1
        assert "another evaluator" in second.stderr
    finally:
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        said = process.communicate(timeout=60)[0]
    assert process.returncode == 0, said
    assert time.monotonic() - began < 10
    assert "StuckInPlain" in tachograph(collector, "alerts", "list").stdout
    silenced_from_elsewhere(collector)
    assert "StuckInPlain" in tachograph(collector, "alerts", "history").stdout
    for format in ("csv", "json", "parquet"):
        asked = tachograph(collector, "alerts", "history", "StuckInPlain", "--output", str(tmp_path / f"h.{format}"))
        assert (asked.returncode, asked.stdout) == (0, ""), asked.stderr
    told = json.loads((tmp_path / "h.json").read_bytes())
    assert told == history(collector), "all columns, as the query has them"
    assert (tmp_path / "h.csv").read_text().startswith('"changed_at","alertname"')
    assert (tmp_path / "h.parquet").read_bytes().startswith(b"PAR1")
    nothing = tachograph(collector, "alerts", "history", "Never", "--format", "json")
    assert (nothing.returncode, nothing.stdout) == (0, "[]\n")
    assert nothing.stderr == "no alert changed its state then\n"


def silenced_from_elsewhere(addresses: Addresses) -> None:
    """Whoever names no data directory finds the running collector's: no other is looked at or made."""
    home = addresses.data_dir / "somebody"
    environment = addresses.environment() | {"HOME": str(home), "XDG_DATA_HOME": str(home)}
    del environment["TACHOGRAPH_DATA_DIR"]

    def ran(*arguments: str) -> subprocess.CompletedProcess[str]:
        call = [sys.executable, "-m", "tachograph", "alerts", *arguments]
        return subprocess.run(call, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=180, check=False)

    made = ran("silence", "create", "alertname=StuckInPlain", "--comment", "known")
    assert made.returncode == 0, made.stderr
    assert made.stderr == f"it is kept in {addresses.data_dir}, the running collector's data directory\n"
    shown = ran("list")
    assert shown.returncode == 0, shown.stderr
    assert "firing (silenced)" in shown.stdout
    assert f", on {addresses.data_dir}" in shown.stdout
    assert ran("silence", "expire", made.stdout[:8]).stdout == made.stdout.replace("\n", " ended\n")
    assert not home.exists()


def firing(addresses: Addresses) -> dict[str, Any]:
    alerts = [one for one in listed(addresses)["alerts"] if one["rule"] == "StuckInPlain"]
    return alerts[0] if alerts and "finding" in alerts[0]["annotations"] else {}


def history(addresses: Addresses) -> list[dict[str, Any]]:
    told = tachograph(addresses, "query", "alert_history", "--format", "json", "--param", "alert=StuckInPlain")
    return list(json.loads(told.stdout)) if told.returncode == 0 else []


def test_what_would_have_fired(collector: Addresses) -> None:
    tested = tachograph(collector, "alerts", "backtest", "StuckInPlain", "--since", "15m", "--step", "10")
    assert tested.returncode == 0, tested.stderr
    assert "StuckInPlain" in tested.stdout
    assert "on at the end: node-1 (engine-1) sits in plain decode" in tested.stdout
    assert "10 s" in tested.stdout
    assert "between two looks" not in tested.stdout, "as often as the evaluator"
    silent = tachograph(collector, "alerts", "backtest", "EngineSilent", "--since", "1m")
    assert silent.returncode == 0, silent.stderr
    assert "what came and went between two looks is not found" in silent.stdout
    assert tachograph(collector, "alerts", "backtest", "CollectorBacklog").returncode == 2


def test_rules_are_checked(collector: Addresses, tmp_path: Path) -> None:
    assert tachograph(collector, "alerts", "check").returncode == 0
    (tmp_path / "mine.yaml").write_text("alert: Mine\nquery: nothing\n")
    (tmp_path / "empty.yaml").write_text("# later\n")
    checked = tachograph(collector, "alerts", "check", str(tmp_path))
    assert checked.returncode == 1
    assert f"refused  {tmp_path / 'mine.yaml'}:1: when: Field required" in checked.stdout
    assert f"refused  {tmp_path / 'mine.yaml'}:1: runbook: Field required" in checked.stdout
    assert f"refused  {tmp_path / 'mine.yaml'}:2: query: " in checked.stdout, "faults of form hide no other"
    assert f"warning  {tmp_path / 'empty.yaml'}:1: no rule stands in it" in checked.stdout
    assert checked.stdout.endswith("0 rules are well, 1 refused\n")
    assert tachograph(collector, "alerts", "check", str(tmp_path / "absent")).returncode == 2
