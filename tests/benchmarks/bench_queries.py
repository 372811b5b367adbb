"""Every query of the catalogue over 10 M stored executions: `python -m tests.benchmarks.bench_queries`.

Asked over HTTP, as a user asks: once as the example in its head has it, and once without parameters. Cold is a first
answer with nothing of the store in memory: the engine's caches and the kernel's pages are dropped before. Warm is the
best of five, since the question is what the query costs, not what else the machine was doing. The store is kept in
build/ for the next time. `make bench ARGS="--only queries"`: the rows, each beside its limit.
"""

import argparse
import contextlib
import hashlib
import itertools
import json
import os
import platform
import shlex
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import clickhouse_connect
from clickhouse_connect.driver.client import Client
from rich.console import Console
from rich.table import Table

from collector.sql_endpoint.server import serving_sql
from collector.store.clickhouse import connection_string, engine_path, open_store
from collector.store.migrations import apply_schema, schema_files
from queries.catalogue import Query, load
from queries.runner import asked
from tests.benchmarks.report import Result
from tests.fixtures.generated import FILLED, generate

WARM_LIMIT_S, COLD_LIMIT_S = 0.2, 1.0
WARM_RUNS = 5
BUILD = Path("build")
EXECUTIONS, EXECUTIONS_QUICK = 10_000_000, 1_000_000
PACKAGES = ("chdb-core", "clickhouse-connect")
STANDS_FOR = {"cell": "bench-33-82", "host": "gpu-node-024", "package": "main", "recipe": "c32"}
"""What the names in the examples are called in the generated fleet."""
CACHES = ("mark", "uncompressed", "query condition", "primary index", "index mark")


class Measured(NamedTuple):
    """What one call of a query took."""

    query: str
    call: str
    result_rows: int
    read_rows: int
    read_bytes: int
    cold_s: float
    warm_s: float
    cpu_s: float
    """CPU time of a warm answer, of server and client together: what holds on a machine that does other things too."""

    @property
    def is_within(self) -> bool:
        return self.warm_s <= WARM_LIMIT_S and self.cold_s <= COLD_LIMIT_S


def parameters_of(query: Query) -> dict[str, str]:
    """The parameters of its example."""
    words = shlex.split(query.example)
    pairs = (word.split("=", 1) for flag, word in itertools.pairwise(words) if flag == "--param")
    return {name: STANDS_FOR.get(name, value) for name, value in pairs}


def forget(store: Client, data_dir: Path) -> None:
    """Drop what the engine and the kernel keep of the store in memory."""
    for cache in CACHES:
        store.command(f"SYSTEM DROP {cache.upper()} CACHE")
    # A merge may take a file away meanwhile; `walk` passes over directories that have gone.
    for folder, _, names in os.walk(engine_path(data_dir)):
        for name in names:
            with contextlib.suppress(FileNotFoundError), Path(folder, name).open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def measure(query: Query, values: dict[str, str], store: Client, reader: Client, data_dir: Path) -> Measured:
    """One call, cold and warm."""
    sql, parameters = asked(query.name, values)
    forget(store, data_dir)
    taken, used = [], []
    for _ in range(1 + WARM_RUNS):
        began, began_cpu = time.perf_counter(), time.process_time()
        answer = reader.query(sql, parameters=parameters)
        taken.append(time.perf_counter() - began)
        used.append(time.process_time() - began_cpu)
    summary: dict[str, Any] = answer.summary
    call = " ".join(f"{name}={value}" for name, value in values.items())
    counts = int(summary["read_rows"]), int(summary["read_bytes"])
    return Measured(query.name, call, len(answer.result_rows), *counts, taken[0], min(taken[1:]), min(used[1:]))


def prepared(data_dir: Path, executions: int) -> Client:
    """The store with so many executions, generated unless they are there."""
    store = open_store(data_dir)
    apply_schema(store)
    if store.command("SELECT count() FROM graph_executions") != executions:
        for table in FILLED:
            store.command(f"TRUNCATE TABLE {table}")
        began = time.perf_counter()
        generate(store, executions)
        print(f"generated {executions:,} executions in {time.perf_counter() - began:.0f} s")  # noqa: T201
    return store


def table_of(measured: list[Measured]) -> Table:
    """The figures for the eye."""
    table = Table(caption=f"limit: {WARM_LIMIT_S * 1e3:.0f} ms warm, {COLD_LIMIT_S * 1e3:,.0f} ms cold")
    for title in ("query", "parameters", "rows", "rows read", "MB read", "cold ms", "warm ms", "CPU ms", "within"):
        table.add_column(title, justify="left" if title in ("query", "parameters") else "right")
    for one in measured:
        figures = (
            f"{one.cold_s * 1e3:,.0f}",
            f"{one.warm_s * 1e3:,.0f}",
            f"{one.cpu_s * 1e3:,.0f}",
            "yes" if one.is_within else "NO",
        )
        counts = (f"{one.result_rows:,}", f"{one.read_rows:,}", f"{one.read_bytes / 1e6:,.1f}")
        table.add_row(one.query, one.call, *counts, *figures)
    return table


def measured_at(executions: int, names: Sequence[str] = ()) -> list[Measured]:
    """Every query of the catalogue, or those named, over so many stored executions."""
    schema = hashlib.sha256("".join(change.sha256 for change in schema_files()).encode()).hexdigest()
    data_dir = BUILD / f"bench-queries-{executions}-{schema[:8]}"
    with (
        prepared(data_dir, executions) as store,
        serving_sql(connection_string(data_dir), str(store.database)) as url,
        clickhouse_connect.get_client(dsn=url, autogenerate_session_id=False) as reader,
    ):
        wanted = [query for name, query in load().items() if (not names or name in names) and query.topic != "alerts"]
        return [
            measure(query, values, store, reader, data_dir)
            for query in wanted
            for values in ([parameters_of(query), {}] if parameters_of(query) else [{}])
        ]


def results(quick: bool) -> Iterable[Result]:
    """Each call, cold and warm, beside its limit."""
    executions = EXECUTIONS_QUICK if quick else EXECUTIONS
    for one in measured_at(executions):
        asked_for = f"{one.query} {one.call}".strip()
        for how, taken_s, limit_s in (("warm", one.warm_s, WARM_LIMIT_S), ("cold", one.cold_s, COLD_LIMIT_S)):
            name = f"queries: {asked_for}, {how}, against the limit"
            yield Result.of(name, taken_s * 1e3, limit_s * 1e3, "ms", executions, *PACKAGES)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--executions", type=int, default=EXECUTIONS)
    arguments.add_argument("--query", action="append", help="only this one; may be repeated")
    chosen = arguments.parse_args()
    measured = measured_at(chosen.executions, chosen.query or ())
    Console(width=150).print(table_of(measured))
    machine = {"cpus": os.cpu_count(), "machine": platform.machine(), "executions": chosen.executions}
    figures = {**machine, "calls": [one._asdict() for one in measured]}
    (BUILD / "bench-queries.json").write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
