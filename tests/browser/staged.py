"""A stage for looking at every page: data that is the same each time, a collector that holds it, and the pages' addresses.

A simulated fleet of six engines for eight minutes of 5 November 2026, the labelled cells of the 1st, the benchmark of
two arms from the 2nd on, people's marks in each, alerts of every kind, engines of the 6th under whose one id two ranks
send. What depends on the day of looking is only how
long ago things were.
"""

import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from itertools import groupby
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode

from clickhouse_connect.driver.client import Client

from collector.judging.judging import ALL_S, judge_cells
from collector.store.clickhouse import open_store
from collector.store.migrations import apply_schema
from dashboards.links import cell_address, cell_parameters
from dashboards.reading.alerts import Place as AlertPlace
from engine_hooks.contract.execution import GraphExecution
from engine_hooks.simulator.cell import run_cell
from engine_hooks.simulator.live import STUMBLE_NS, STUMBLE_RATE_HZ
from engine_hooks.simulator.parameters import S_NS, Scenario, steady
from engine_hooks.simulator.recording import CellLabels, simulated_resource
from queries.alerts.book import Entry
from queries.alerts.delivery.receivers import own_silences
from queries.alerts.delivery.silences import Matcher, Silence
from queries.alerts.states import State
from queries.annotations.marks import Mark
from queries.client import connect
from tests.browser.driven import ROOT, dashboards
from tests.browser.labelled_cells import FEW, STUCK_CELL, STUCK_INSTANCE
from tests.browser.two_arms import BEGAN as ARMS_BEGAN
from tests.browser.two_arms import store_arms
from tests.fixtures.alert_fleets import VirtualTime, store
from tests.fixtures.alert_state import entry, left_behind
from tests.fixtures.otlp_files import requests_in
from tests.fixtures.running import Addresses, running_collector
from tests.fixtures.senders import eventually

FLEET_BEGAN = datetime(2026, 11, 5, 20, tzinfo=UTC)
FLEET_ENDED = FLEET_BEGAN + timedelta(minutes=8)
RANKS_BEGAN = datetime(2026, 11, 6, 20, tzinfo=UTC)
RANKS_ENDED = RANKS_BEGAN + timedelta(minutes=3)
RANKS_ENGINES = 4
"""One more than the Fleet page names."""
LABELLED_BEGAN = datetime(2026, 11, 1, tzinfo=UTC)
STUCK_CELL_NOTED = LABELLED_BEGAN + timedelta(seconds=45)
SENT_EVERY_S = 30
HOSTS = ("gpu-node-001", "gpu-node-002", "gpu-node-003")
FINDING = """Cell bench-r014, as of 2026-11-01 00:01:10 UTC:
estimate inflation: 145 tokens/s lost in that cell (4,338 in 30 s)
- estimate inflation since 2026-11-01 00:00:32 UTC:
  Execution 784 of P128 held up the pipeline for 81.69 ms with 29.07 ms on the GPU, submitted at queue depth 0: the estimate of P128 rose from 30.12 to 38.73 ms.
  1,948 decisions over 27.0 s took decode in place of P128, which at its true cost would have won: 4,338 tokens lost.
  poisoned by execution 784 of P128 at 2026-11-01 00:00:32 UTC, which lifted the estimate from 30.1 to 38.7 ms"""
"""As an evaluator tells it with the alert."""
MODELS = {"main": "exposed_mean", "pr-188": "drained_share"}
"""The cost model of each package."""


class Place(NamedTuple):
    """A page in a state worth looking at."""

    name: str
    path: str
    """Its address, relative to the dashboards' root."""
    has_chart: bool = True


class Stage(NamedTuple):
    """Dashboards that are served."""

    url: str
    data_dir: Path

    def refresh(self) -> None:
        """The evaluator of alerts looks again."""
        leave_alerts(self.data_dir)


def held(since: datetime, until: datetime) -> dict[str, str]:
    """The query parameters of a held time."""
    return {"range": "fixed", "from": f"{since:%Y-%m-%dT%H:%M:%SZ}", "to": f"{until:%Y-%m-%dT%H:%M:%SZ}"}


ARMS_HELD = held(ARMS_BEGAN - timedelta(hours=1), ARMS_BEGAN + timedelta(days=3))
STATEMENT = "SELECT graph_name, count() AS executions FROM graph_executions GROUP BY graph_name ORDER BY graph_name"
PLACES = (
    Place("fleet", f"?{urlencode(held(FLEET_BEGAN, FLEET_ENDED))}"),
    Place("fleet-all", "?range=all"),
    Place("fleet-repeated", f"?{urlencode(held(RANKS_BEGAN, RANKS_ENDED))}"),
    Place("fleet-empty", "?range=10+min", has_chart=False),
    Place("cell", cell_address(STUCK_INSTANCE, STUCK_CELL)),
    Place("cell-execution", f"{cell_address(STUCK_INSTANCE, STUCK_CELL)}&execution=784"),
    Place("cell-none", "cell", has_chart=False),
    Place("graphs", f"graphs?{urlencode(ARMS_HELD)}"),
    Place("graphs-handoff", f"graphs?{urlencode(ARMS_HELD | {'measure': 'handoff', 'graph': 'P128'})}"),
    Place("compare", "compare"),
    Place("what-if", f"what_if?{urlencode(cell_parameters(STUCK_INSTANCE, STUCK_CELL) | {'simulate': 'true'})}"),
    Place("alerts", "alerts", has_chart=False),
    Place("sql", "sql", has_chart=False),
    Place("sql-table", "sql?query=stuck_plain&p_last_s=0", has_chart=False),
    Place(
        "sql-chart", f"sql?{urlencode({'with': 'SQL of my own', 'sql': STATEMENT, 'show': 'chart', 'mark': 'bars'})}"
    ),
    Place("health", "health"),
)
"""Every page."""


@contextmanager
def staged(data_dir: Path, cases: Path) -> Iterator[Stage]:
    """The dashboards over the whole stage."""
    # In a process of its own: one that runs tests has an embedded engine open already.
    subprocess.run([sys.executable, "-m", "tests.browser.staged", str(data_dir)], check=True, cwd=ROOT)
    leave_alerts(data_dir)
    keep_silence(data_dir)
    with running_collector(data_dir) as addresses:
        send_cells(addresses, cases)
        until_judged(addresses)
        settings = {
            "TACHOGRAPH_DATA_DIR": str(data_dir),
            "TACHOGRAPH_COLLECTOR_URL": f"http://127.0.0.1:{addresses.otlp_http_port}",
        }
        with dashboards(addresses.clickhouse_url, **settings) as url:
            yield Stage(url, data_dir)


def set_up(data_dir: Path) -> None:
    """All that a client writes."""
    with closing(open_store(data_dir)) as client:
        apply_schema(client)
        store_fleet(client)
        store_ranks(client)
        store_arms(client)
        store_marks(client)
        store_history(client)
        # All of it arrived weeks ago, and a collector looks two days back.
        judge_cells(client, recent_s=int((datetime.now(UTC) - LABELLED_BEGAN).total_seconds()), stretches=1000)


class Run(NamedTuple):
    """One simulated run of an engine."""

    began: datetime
    ended: datetime
    host: str
    package: str
    instance: str
    seed: int


def store_fleet(client: Client) -> None:
    """Six engines: on each host one that is fooled and one that is not, with the same luck."""
    for seed, host in enumerate(HOSTS):
        for package in MODELS:
            instance = f"{host}-1793908800-{4000 + 7 * seed + len(package)}"
            store_run(client, Run(FLEET_BEGAN, FLEET_ENDED, host, package, instance, seed))


def store_ranks(client: Client) -> None:
    """Engines whose two ranks send under one id at the same time, each with its own luck."""
    for number in range(RANKS_ENGINES):
        host = f"gpu-node-{11 + number:03}"
        for rank in range(2):
            run = Run(RANKS_BEGAN, RANKS_ENDED, host, "main", f"{host}-1793995200-{5000 + number}", 2 * number + rank)
            store_run(client, run)


def store_run(client: Client, run: Run) -> None:
    """Simulate it, with its package's cost model, and store it as it arrived."""
    began_ns = int(run.began.timestamp()) * S_NS
    scenario = Scenario(
        "fleet",
        phases=steady(delay_rate_hz=STUMBLE_RATE_HZ, delay_median_ns=STUMBLE_NS),
        duration_ns=int((run.ended - run.began).total_seconds()) * S_NS,
    )
    executions: list[GraphExecution] = []
    labels = CellLabels(epoch_unix_ns=began_ns)
    run_cell(scenario, MODELS[run.package], run.seed, on_execution=executions.append, labels=labels)
    resource = simulated_resource(
        run.instance,
        service_name="engine",
        host_name=run.host,
        engine_version="1",
        engine_package=run.package,
        engine_recipe="32-lanes",
    )
    # Each half minute arrives when it is over: what arrives before it ran is of a clock that is ahead.
    halves = groupby(executions, lambda one: (one.started_at - began_ns) // (SENT_EVERY_S * S_NS))
    arrivals = [(SENT_EVERY_S * (number + 1) + 1.0, resource, list(sent)) for number, sent in halves]
    store(arrivals, client, VirtualTime("", began_ns))


def store_marks(client: Client) -> None:
    """What people noted: in the fleet's time, in the benchmark's, in the stuck cell."""
    marks = [
        Mark("fleet", FLEET_BEGAN + timedelta(minutes=4), "deployed 188", author="ada"),
        Mark("host", FLEET_BEGAN + timedelta(minutes=6), "fan replaced", host_name=HOSTS[1], author="ben"),
        Mark("arms", ARMS_BEGAN + timedelta(hours=40), "new driver", host_name="gpu-node-002", author="ben"),
        Mark("cell", STUCK_CELL_NOTED, "backup began", author="cron"),
    ]
    client.insert("annotations", [[*mark, mark.at] for mark in marks], column_names=[*Mark._fields, "made_at"])


def store_history(client: Client) -> None:
    """Alerts that came and went within the last two hours."""
    now = datetime.now(UTC)
    columns = [
        "changed_at",
        "alertname",
        "severity",
        "state",
        "state_before",
        "service_instance_id",
        "host_name",
        "cell",
    ]
    rows = [
        [now - timedelta(minutes=minutes), alert, severity, state, before, STUCK_INSTANCE, host, STUCK_CELL, {"summary": said}]
        for minutes, alert, severity, state, before, host, said in (
            (95, "StuckInPlain", "critical", "firing", "pending", "gpu-node-024", "gpu-node-024 sits in plain decode: 92 % of its time"),
            (70, "StuckInPlain", "critical", "resolved", "firing", "gpu-node-024", "gpu-node-024 decodes speculatively again"),
            (30, "HostBound", "warning", "firing", "pending", "gpu-node-018", "gpu-node-018: its GPU waits for the host in 31 % of the time"),
        )
    ]  # fmt: skip
    client.insert("alert_history", rows, column_names=[*columns, "annotations"])


def leave_alerts(data_dir: Path) -> None:
    """An evaluator that looked just now."""
    left_behind(
        data_dir,
        told(
            "StuckInPlain", State.FIRING, "gpu-node-024", "critical", "sits in plain decode: 92 % of its decoding time"
        ),
        told("HostBound", State.FIRING, "gpu-node-018", "warning", "its GPU waits for the host in 31 % of the time"),
        told("EngineSilent", State.PENDING, "gpu-node-002", "warning", "nothing arrived from it for 70 s"),
        told("ClockSkew", State.FIRING, "gpu-node-003", "warning", "its clock is 42 s ahead"),
    )


def told(rule: str, state: State, host: str, severity: str, summary: str) -> Entry:
    """One alert, in words that the shipped rules would use."""
    finding = FINDING if rule == "StuckInPlain" else ""
    runbook = f"Open the cell: the finding says why. `tachograph alerts list` shows what else {host} has."
    words = {"summary": f"{host}: {summary}", "finding": finding, "runbook": runbook}
    return replace(entry(rule, state, host=host, severity=severity), annotations=words)


def keep_silence(data_dir: Path) -> None:
    """One clock that somebody knows about."""
    now = datetime.now(UTC)
    own_silences(AlertPlace(data_dir)).create(
        Silence(
            matchers=[Matcher(name="alertname", value="ClockSkew"), Matcher(name="host_name", value="gpu-node-003")],
            starts_at=now,
            ends_at=now + timedelta(hours=6),
            created_by="ada",
            comment="NTP is being mended",
        ),
        now,
    )


def send_cells(addresses: Addresses, cases: Path) -> None:
    """The labelled cells through the collector's own door, so that it has something to tell of itself."""
    for name in FEW:
        for body in requests_in(cases / "cells" / f"{name}.otlp.gz"):
            asked = urllib.request.Request(  # noqa: S310 -- loopback
                addresses.otlp_http, body, {"Content-Type": "application/x-protobuf"}
            )
            with urllib.request.urlopen(asked, timeout=30):  # noqa: S310
                pass


def until_judged(addresses: Addresses) -> None:
    """Every cell that the collector looks for has its verdict: pages that are looked at minutes apart tell the same."""
    waiting = files("collector.judging").joinpath("unjudged_cells.sql").read_text("utf-8")
    with closing(connect(addresses.clickhouse_url)) as client:
        asked = {"recent_s": ALL_S, "stretches": 1}
        eventually(lambda: not client.query(waiting, parameters=asked).result_rows)


def cases_here() -> Path | None:
    """The labelled cells beside the checkout, if they are there."""
    path = Path(os.path.abspath(__file__)).parents[3] / "shared" / "cases"
    return path if path.is_dir() else None


if __name__ == "__main__":
    set_up(Path(sys.argv[1]))
