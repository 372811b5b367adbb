"""What a collector itself spends on an execution where ClickHouse is a server of its own, beside the embedded one.

`make bench-ingest_by_url`. The same requests, the same doors, one after the other; the server is the embedded engine in
another process, written to over HTTP, whose CPU time counts for nothing here, as a cluster's would not.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import islice
from pathlib import Path

from rich.console import Console

from tests.benchmarks.bench_ingest import Running, Sizes, door_figures
from tests.benchmarks.ingest_load import DOORS, requests_of, send_all
from tests.benchmarks.ingest_references import Rate
from tests.benchmarks.report import Result
from tests.fixtures.running import ROOT, free_addresses, started

MEASURED = ("gRPC", "HTTP protobuf")
LIMIT = 0.25


class Ledgered(Running):
    """Asked by its ledger how much it has stored, which costs it the same wherever the store is."""

    def stored(self) -> int:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.addresses.otlp_http_port}/state", timeout=30) as answer:
            return sum(door["stored"] for door in json.load(answer)["ledger"].values())

    def wait_until_stored(self, executions: int, deadline_s: float = 300.0) -> None:
        deadline = time.monotonic() + deadline_s
        while (stored := self.stored()) < executions:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{stored} of {executions} executions stored after {deadline_s:.0f} s")
            time.sleep(0.25)  # Each asking costs the collector a millisecond.


@contextmanager
def embedded() -> Iterator[Ledgered]:
    with tempfile.TemporaryDirectory() as directory, _collector(Path(directory)) as running:
        yield running


@contextmanager
def by_url() -> Iterator[Ledgered]:
    with tempfile.TemporaryDirectory() as directory:
        command = [sys.executable, "-m", "tests.fixtures.stand_in_server", f"{directory}/server"]
        with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            url = f"{server.stdout.readline().strip()}/tachograph"
            with _collector(Path(directory), "--clickhouse-url", url) as running:
                yield running


@contextmanager
def _collector(directory: Path, *arguments: str) -> Iterator[Ledgered]:
    addresses = free_addresses(directory / "data")
    ready = f"http://127.0.0.1:{addresses.otlp_http_port}/readyz"
    with started(addresses, "collect", *arguments, ready_url=ready) as process:
        yield Ledgered(addresses, process.pid)


def rates(collector: AbstractContextManager[Ledgered], sizes: Sizes) -> dict[str, Rate]:
    """By door; a few requests go before, so that what is made once is made."""
    with collector as running:
        warm = list(islice(requests_of("warm:1", sizes.spans), 8))
        send_all(DOORS["gRPC"], running.addresses, [warm])
        running.wait_until_stored(len(warm) * sizes.spans)
        return {door: door_figures(running, door, sizes).rate for door in MEASURED}


def figures(sizes: Sizes) -> list[Result]:
    """CPU time of the collector's process an execution, by door."""
    here, there = rates(embedded(), sizes), rates(by_url(), sizes)
    return [
        Result.of(
            f"ingest: collector's CPU an execution with a server by URL ({door}), against embedded",
            1e6 / there[door].per_core_s,
            1e6 / here[door].per_core_s,
            "us",
            there[door].spans,
            "chdb",
            "grpcio",
        )
        for door in MEASURED
    ]


def results(quick: bool) -> Iterable[Result]:
    """The rows of `make bench`."""
    return figures(Sizes(requests=100 if quick else 400))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=Sizes().requests, help="requests of 500 through each door")
    console = Console(width=140)
    for row in figures(Sizes(requests=parser.parse_args().requests)):
        console.print(f"{row.name}: {row.ours:.1f} / {row.reference:.1f} us = {row.ratio:.2f} (limit {LIMIT})")


if __name__ == "__main__":
    main()
