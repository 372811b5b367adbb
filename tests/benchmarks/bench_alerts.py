"""What alerts find of simulated engines, and how soon: `make bench-alerts`.

First engines that become stuck at a random second: how long after StuckInPlain's condition holds the receiver has the
alert. Then healthy and sick engines of several kinds under every shipped rule with a query: false positives and misses.
All in virtual time, through the store, the SQL, the evaluator and a receiver's thread, at one evaluation every 10 s and
one export of each engine every 5 s. Ends with 1 if an alert came later than one interval, was false, or was missed.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import structlog
from clickhouse_connect.driver.client import Client
from rich.console import Console
from rich.table import Table

from collector.store.clickhouse import open_store
from tests.benchmarks.report import Result
from tests.fixtures.alert_fleets import (
    EXPECTED,
    HEALTHY,
    INTERVAL_S,
    SICK,
    Kind,
    Simulated,
    Told,
    fleet_start_ns,
    held_from_s,
    simulated,
    watched,
)
from tests.fixtures.databases import database, read_only_url

DURATION_S = 160.0
FLEET_ENGINES = 40
"""Engines that are watched together."""


def fleets(
    tasks: Sequence[tuple[Kind, int]], client: Client, data_dir: Path
) -> Iterator[tuple[list[Simulated], list[Told], int]]:
    """Each fleet of engines, what was told of it, and where its time begins."""
    for first in range(0, len(tasks), FLEET_ENGINES):
        fleet_ns = fleet_start_ns()
        engines = [simulated(kind, seed, fleet_ns, DURATION_S) for kind, seed in tasks[first : first + FLEET_ENGINES]]
        with (
            database(client),
            read_only_url(str(client.database), data_dir) as url,
            tempfile.TemporaryDirectory() as kept,
        ):
            told = watched(engines, client, url, Path(kept), duration_s=DURATION_S, fleet_ns=fleet_ns)
        print(f"{first + len(engines)} of {len(tasks)} engines", file=sys.stderr, flush=True)  # noqa: T201
        yield engines, told, fleet_ns


def detection(runs: int, client: Client, data_dir: Path) -> dict[str, Any]:
    """How soon stuck engines are told."""
    lags, since_onset, missed = [], [], 0
    for engines, told, fleet_ns in fleets([(Kind.STUCK, 10_000 + seed) for seed in range(runs)], client, data_dir):
        at = {one.instance: one.at_s for one in told if one.alertname == "StuckInPlain"}
        for engine in engines:
            at_s = at.get(engine.resource.service_instance_id)
            if at_s is None:
                missed += 1
                continue
            lags.append(at_s - held_from_s(engine, fleet_ns))
            since_onset.append(at_s - engine.sick_from_s)
    return {
        "runs": runs,
        "missed": missed,
        "lag_median_s": statistics.median(lags),
        "lag_max_s": max(lags),
        "after_first_delays_median_s": statistics.median(since_onset),
        "after_first_delays_max_s": max(since_onset),
    }


def verdicts(cells: int, client: Client, data_dir: Path) -> dict[str, Any]:
    """False positives among healthy engines, and misses among sick ones."""
    tasks = [(HEALTHY[n % len(HEALTHY)], n) for n in range(cells)] + [(SICK[n % len(SICK)], n) for n in range(cells)]
    false: list[str] = []
    missed: list[str] = []
    others: Counter[str] = Counter()
    redrawn = 0
    for engines, told, _ in fleets(tasks, client, data_dir):
        for engine in engines:
            redrawn += engine.redrawn
            names = {one.alertname for one in told if one.instance == engine.resource.service_instance_id}
            expected = EXPECTED.get(engine.kind)
            if not expected:
                false += [f"{name} of {engine.kind} {engine.seed}" for name in names]
                continue
            if expected not in names:
                missed.append(f"{expected} of {engine.kind} {engine.seed}")
            others.update(f"{name} of {engine.kind}" for name in names - {expected})
    return {
        "healthy": cells,
        "sick": cells,
        "false_positives": false,
        "misses": missed,
        "told_besides": dict(others),
        "redrawn": redrawn,
    }


def report(soon: dict[str, Any], right: dict[str, Any], took_s: float) -> Table:
    """Both, for the eye."""
    table = Table("what", "figure", box=None, pad_edge=False)
    for name, value in {**soon, **right, "took_s": took_s}.items():
        shown = f"{value:.1f}" if isinstance(value, float) else str(value)
        table.add_row(name.replace("_", " "), f"{len(value)}: {'; '.join(value)}" if isinstance(value, list) else shown)
    return table


def results(quick: bool) -> Iterable[Result]:
    """As `tests.benchmarks.report` asks for."""
    runs, cells = (8, 12) if quick else (50, 200)
    soon, right = measured(runs, cells)
    for name, figure in (("at most", "lag_max_s"), ("median", "lag_median_s")):
        yield Result.of(
            f"alerts: from StuckInPlain's condition to the receiver, {name}, against one interval", soon[figure],
            INTERVAL_S, "s", runs,
        )  # fmt: skip
    yield Result.of("alerts: stuck engines missed", soon["missed"], None, "engines", runs)
    yield Result.of("alerts: false ones, of healthy engines", len(right["false_positives"]), None, "alerts", cells)
    yield Result.of("alerts: missed, of sick engines", len(right["misses"]), None, "engines", cells)


def measured(runs: int, cells: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """`detection` and `verdicts`, in a store of their own."""
    structlog.configure(logger_factory=structlog.ReturnLoggerFactory())
    with tempfile.TemporaryDirectory() as directory:
        client = open_store(Path(directory))
        try:
            return detection(runs, client, Path(directory)), verdicts(cells, client, Path(directory))
        finally:
            client.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=50, help="engines that become stuck")
    parser.add_argument("--cells", type=int, default=200, help="healthy engines, and as many sick ones")
    parser.add_argument("--json", type=Path, help="write the figures there")
    chosen = parser.parse_args()
    started = time.monotonic()
    soon, right = measured(chosen.runs, chosen.cells)
    Console().print(report(soon, right, time.monotonic() - started))
    if chosen.json:
        chosen.json.write_text(json.dumps({"detection": soon, "verdicts": right}, indent=1))
    if soon["missed"] or soon["lag_max_s"] > INTERVAL_S or right["false_positives"] or right["misses"]:
        sys.exit(1)


if __name__ == "__main__":
    main()
