"""Live queries at 1 M, 10 M and 100 M stored executions: what pages, `top` and alert rules ask on timers and at clicks.

`make bench-live`, `make bench ARGS="--only live"`. One fleet of 200 engines, recorded for 15 minutes, 2.4 hours and a day:
what is looked at is the same, what is stored is not. Generated inside ClickHouse, seeded, and kept in build/ for the next
time. Asked over HTTP as pages, `top` and rules ask: from another process, each in its own form, and as in those two
processes Python does not look through its libraries for garbage. Beside wall time stands the CPU time of server and client
together, which holds on a machine that does other things too.
"""

import argparse
import gc
import hashlib
import math
import statistics
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from rich.table import Table

from collector.judging.judging import judge_cells, settle_hours
from collector.sql_endpoint.server import serving_sql
from collector.store.clickhouse import connection_string, open_store
from collector.store.migrations import apply_schema, schema_files
from queries.client import connected
from queries.runner import run
from tests.benchmarks.process_costs import costs_of
from tests.benchmarks.report import Result, merge, show
from tests.fixtures.generated import FILLED, generate

LIMIT_MS: Final = 50.0
GROWTH_MAX: Final = 2.0
SIZES: Final = (960_000, 10_080_000, 100_080_000)
"""1 M, 10 M and 100 M, in whole cells of 1,200: so that as many engines run at the end of each."""
ENGINES: Final = 200
DAY_EXECUTIONS: Final = SIZES[-1]
"""What the fleet executes in 24 hours."""
UNTIL: Final = datetime(2026, 11, 2, 12, tzinfo=UTC)
RUNS: Final = 25
WARM_RUNS: Final = 5
JUDGED_STRETCHES: Final = 12
"""Stretches of ten minutes that are judged before measuring, as a collector would have: the newest two hours."""
PAGES: Final = ("Fleet", "Cell", "Health", "Graphs")
PACKAGES: Final = ("chdb-core", "clickhouse-connect")


class Asked(NamedTuple):
    """A live query as somebody asks it."""

    who: str
    query: str
    values: dict[str, Any]

    @property
    def name(self) -> str:
        return f"{self.who}: {self.query}"

    @property
    def format(self) -> Literal["rows", "pandas"]:
        """Pages take frames."""
        return "pandas" if self.who.split(",")[0] in PAGES else "rows"


class Measured(NamedTuple):
    """What its answers took."""

    asked: Asked
    executions: int
    wall_p50_ms: float
    wall_p95_ms: float
    cpu_mean_ms: float
    rows: int


def before(**ago: float) -> datetime:
    """An instant before the newest execution."""
    return UNTIL - timedelta(**ago)


def live_queries(cell: dict[str, Any], day: datetime) -> list[Asked]:
    """What is asked; `cell` is one that is stuck, as `live_stuck` has it, and `day` where the day begins."""
    at = {"at": UNTIL + timedelta(seconds=2)}
    half_hour = {"from": before(minutes=30)}
    one = {"service_instance_id": cell["service_instance_id"], "cell": cell["cell"]}
    began, ended = cell["started_at"], cell["ended_at"]
    within = {**one, "from": began.replace(microsecond=0), "to": ended.replace(microsecond=0) + timedelta(seconds=1)}
    return [
        Asked("Fleet", "engines", half_hour),
        Asked("Fleet", "live_cells", half_hour),
        Asked("Fleet", "live_stuck", {**half_hour, "limit": 15}),
        Asked("Fleet, a day", "engines", {"from": day}),
        Asked("Fleet, a day", "fleet_stretches", {"from": day, "stretch_s": 1800}),
        Asked("Fleet", "annotations", half_hour),
        Asked("Fleet", "repeated_numbers", half_hour),
        Asked("Cell", "live_cells", one),
        Asked("Cell", "live_stuck", {**one, "from": within["from"]}),
        Asked("Cell", "live_inflation", within),
        Asked("Cell", "executions", within),
        Asked("Cell", "candidates", within),
        Asked("Cell, none chosen", "live_stuck", {"from": before(hours=1), "limit": 20}),
        Asked("top", "live_cells", {**half_hour, "limit": 20_000}),
        Asked("top, first look", "live_cells", {"last_s": 1800, "limit": 20_000}),
        Asked("Health", "silent_engines", at),
        Asked("Health", "clock_skew", {"from": day}),
        Asked("Health", "sequence_gaps", {"from": day, "limit": 20}),
        Asked("Graphs", "live_drift", {"last_s": 3600, "history_s": 604_800}),
        Asked("StuckInPlain", "stuck_engines", at),
        Asked("ClockSkew", "skewed_clocks", at),
        Asked("ExecutionsLost", "lost_executions", at),
        Asked("GraphRegression", "live_regressed", {**at, "lookback_s": 21_600}),
        Asked("EstimateInflation", "live_overcharged", {"from": before(seconds=90)}),
        # A minute in which all engines run: the last cells of the largest store end up to a minute before the end.
        Asked(
            "HostBound", "late_hosts", {"from": before(minutes=2), "to": before(minutes=1), "gap_above_ns": 1_000_000}
        ),
    ]


@contextmanager
def stored(executions: int, folder: Path) -> Iterator[str]:
    """The fleet's store with so many executions, generated unless it is there: the URL at which it answers."""
    with open_store(folder) as store:
        apply_schema(store)
        if store.command("SELECT count() FROM graph_executions") != executions:
            for table in FILLED:
                store.command(f"TRUNCATE TABLE {table}")
            began = time.perf_counter()
            span_s = math.ceil(86_400 * executions / DAY_EXECUTIONS / 30) * 30
            generate(store, executions, ENGINES, f"{UNTIL:%Y-%m-%d %H:%M:%S}", span_s)
            print(f"generated {executions:,} executions in {time.perf_counter() - began:.0f} s")  # noqa: T201
        # All that the generator made arrived then.
        since_then = int((datetime.now(UTC) - UNTIL).total_seconds()) + 2 * 86_400
        judge_cells(store, since_then, JUDGED_STRETCHES)
        settle_hours(store, before(days=2), UNTIL)
        # What the engine tidies up for itself is no part of an answer, and would count as its CPU time.
        store.command("SYSTEM STOP MERGES")
        with serving_sql(connection_string(folder), str(store.database)) as url:
            yield url


def serve(executions: int, folder: Path, told: Connection) -> None:
    """Serve a store until something is said, as the collector does: in a process of its own."""
    with stored(executions, folder) as url:
        gc.freeze()
        told.send(url)
        told.recv()


@contextmanager
def served(executions: int, folder: Path) -> Iterator[tuple[str, int]]:
    """The URL of a store, and the process that serves it."""
    context = get_context("spawn")
    here, there = context.Pipe()
    server = context.Process(target=serve, args=(executions, folder, there))
    server.start()
    there.close()
    try:
        yield here.recv(), server.pid or 0
        here.send("enough")
    finally:
        here.close()
        server.join()


def measure(url: str, pid: int, one: Asked, executions: int) -> Measured:
    """Ask again and again."""
    for _ in range(WARM_RUNS):
        rows = len(run(one.query, url, one.format, **one.values))
    walls, used_s = [], costs_of(pid).cpu_s + time.process_time()
    for _ in range(RUNS):
        began = time.perf_counter()
        run(one.query, url, one.format, **one.values)
        walls.append((time.perf_counter() - began) * 1e3)
    used_s = costs_of(pid).cpu_s + time.process_time() - used_s
    p95 = statistics.quantiles(walls, n=20, method="inclusive")[18]
    return Measured(one, executions, statistics.median(walls), p95, used_s / RUNS * 1e3, rows)


def measured_at(executions: int, folder: Path) -> list[Measured]:
    """Every live query at one size."""
    with served(executions, folder) as (url, pid):
        (cell,) = run("live_stuck", url, "rows", limit=1, **{"from": before(hours=1)})
        gc.collect()
        gc.freeze()
        try:
            return [measure(url, pid, one, executions) for one in live_queries(cell, before(days=1))]
        finally:
            gc.unfreeze()
            connected(url).close()
            connected.cache_clear()


def rows_of(sizes: list[list[Measured]]) -> Iterator[Result]:
    """Wall and CPU time beside the limit at each size; median wall and CPU time at the largest beside that at the smallest."""
    for size in sizes:
        for one in size:
            name = f"live queries: {one.asked.name}, median, against the limit"
            yield Result.of(name, one.wall_p50_ms, LIMIT_MS, "ms", one.executions, *PACKAGES)
            name = f"live queries: {one.asked.name}, 95th percentile, against the limit"
            yield Result.of(name, one.wall_p95_ms, LIMIT_MS, "ms", one.executions, *PACKAGES)
            name = f"live queries: {one.asked.name}, CPU time, against the limit"
            yield Result.of(name, one.cpu_mean_ms, LIMIT_MS, "ms", one.executions, *PACKAGES)
    smallest, largest = sizes[0], sizes[-1]
    if smallest is largest:
        return
    for few, many in zip(smallest, largest, strict=True):
        name = f"live queries: {many.asked.name}, median, against {few.executions:,} executions"
        yield Result.of(name, many.wall_p50_ms, few.wall_p50_ms, "ms", many.executions, *PACKAGES)
        name = f"live queries: {many.asked.name}, CPU time, against {few.executions:,} executions"
        yield Result.of(name, many.cpu_mean_ms, few.cpu_mean_ms, "ms", many.executions, *PACKAGES)


def table_by_size(sizes: list[list[Measured]]) -> Table:
    """A query a row, a size a column: median / 95th percentile of wall time (median CPU time), in ms."""
    table = Table(
        title="live queries: wall time, median / 95th percentile (CPU time), in ms",
        caption=f"limits: {LIMIT_MS:g} ms at the 95th percentile, growth {GROWTH_MAX:g}",
    )
    for column in ("query", *(f"{size[0].executions:,}" for size in sizes), "rows", "growth", "of CPU time", "within"):
        table.add_column(column, justify="left" if column == "query" else "right")
    for ones in zip(*sizes, strict=True):
        few, many = ones[0], ones[-1]
        growth = many.wall_p50_ms / few.wall_p50_ms
        is_within = many.wall_p95_ms < LIMIT_MS and growth <= GROWTH_MAX
        times = (f"{one.wall_p50_ms:.1f} / {one.wall_p95_ms:.1f} ({one.cpu_mean_ms:.1f})" for one in ones)
        ratios = (f"{growth:.2f}", f"{many.cpu_mean_ms / few.cpu_mean_ms:.2f}")
        table.add_row(many.asked.name, *times, f"{many.rows:,}", *ratios, "yes" if is_within else "NO")
    return table


def folder_of(executions: int) -> Path:
    """Where a size is kept; another schema is another folder."""
    schema = "".join(change.sha256 for change in schema_files())
    return Path("build") / f"bench-live-{executions}-{hashlib.sha256(schema.encode()).hexdigest()[:8]}"


def results(quick: bool) -> Iterable[Result]:
    """Sizes that take minutes to generate only where the run may be long."""
    sizes = [measured_at(executions, folder_of(executions)) for executions in (SIZES[:1] if quick else SIZES)]
    yield from rows_of(sizes)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--executions", type=float, nargs="+", default=SIZES, help="sizes, ascending")
    arguments.add_argument("--folder", type=Path, nargs="+", help="where each size is kept, instead of build/")
    chosen = arguments.parse_args()
    counts = [int(one) for one in chosen.executions]
    folders = chosen.folder or [folder_of(count) for count in counts]
    sizes = [measured_at(count, folder) for count, folder in zip(counts, folders, strict=True)]
    merge(rows_of(sizes))
    show(table_by_size(sizes))


if __name__ == "__main__":
    main()
