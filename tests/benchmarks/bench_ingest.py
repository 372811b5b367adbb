"""Executions into a real `tachograph collect`: durable, validated and stored.

`make bench-ingest`, `make bench-ingest ARGS='--minutes 10'`. Executions a second and for each second of the collector's
CPU time through every door, times to acknowledge, bytes written and peak memory; beside them, in the same run, the same
requests walked in Python, decoded and inserted by the engine alone, and inserted as Arrow. With `--minutes`, a soak
instead (`ingest_soak`): nothing may be lost, and memory must be flat and under its bound.
"""

import argparse
import json
import platform
import statistics
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import clickhouse_connect
import orjson
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from rich.console import Console
from rich.table import Table

from tests.benchmarks.ingest_load import DOORS, Sent, requests_of, send_all
from tests.benchmarks.ingest_references import Rate, best_of, engine_figures, walk, walk_and_validate
from tests.benchmarks.ingest_soak import complaints, soak
from tests.benchmarks.process_costs import costs_of
from tests.benchmarks.report import Result
from tests.fixtures.otlp_json import json_of
from tests.fixtures.running import Addresses, free_addresses, started

MEMORY_BOUND_BYTES = 1_500_000_000
COMPARED = ("walked and validated in Python", "decoded and inserted by the engine alone")


class Sizes(NamedTuple):
    """How much is sent."""

    spans: int = 500
    """Executions of one request."""
    senders: int = 32
    """Engines that send, each with one request under way, as exporters do."""
    requests: int = 400
    """Requests through each door; a tenth of them in OTLP/JSON."""
    singles: int = 30
    """Requests of one execution, one after another, to see how long an acknowledgement takes when nothing else is on."""
    batch_requests: int = 32
    """Requests of one insert where the engine is measured alone: as many as wait at a time."""
    repeats: int = 3


class DoorFigures(NamedTuple):
    """One door of the collector."""

    rate: Rate
    """Until everything is stored, with the CPU time of the collector's process."""
    acknowledged_s: float
    """Until everything was acknowledged."""
    latency_ms: dict[str, float]
    """To acknowledge a request: p50 and p99 at full speed, p50 and p99 of a lone execution."""
    written_bytes: float
    """Handed to the disk, each execution."""


class Running(NamedTuple):
    """A collector process."""

    addresses: Addresses
    pid: int

    def stored(self) -> int:
        with clickhouse_connect.get_client(dsn=self.addresses.clickhouse_url) as client:
            return int(client.command("SELECT count() FROM graph_executions"))

    def wait_until_stored(self, executions: int, deadline_s: float = 120.0) -> None:
        deadline = time.monotonic() + deadline_s
        while (stored := self.stored()) < executions:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{stored} of {executions} executions stored after {deadline_s:.0f} s")
            time.sleep(0.02)


@contextmanager
def collector() -> Iterator[Running]:
    with tempfile.TemporaryDirectory() as directory:
        addresses = free_addresses(Path(directory))
        ready = f"http://127.0.0.1:{addresses.otlp_http_port}/readyz"
        with started(addresses, "collect", ready_url=ready) as process:
            yield Running(addresses, process.pid)


# ---- through the doors


def door_figures(running: Running, name: str, sizes: Sizes) -> DoorFigures:
    requests = sizes.requests // 10 if "JSON" in name else sizes.requests
    encode = as_json if "JSON" in name else bytes
    queues = [
        [encode(raw) for raw in islice(requests_of(f"{name} {n}:1", sizes.spans, n), max(1, requests // sizes.senders))]
        for n in range(sizes.senders)
    ]
    singles = [encode(raw) for raw in islice(requests_of(f"{name}:1", 1), sizes.singles)]
    before, at_first = running.stored(), costs_of(running.pid)
    began = time.perf_counter()
    sent = send_all(DOORS[name], running.addresses, list(queues))
    acknowledged_s = time.perf_counter() - began
    spans = sizes.spans * sent.acknowledged
    running.wait_until_stored(before + spans)
    wall_s, at_last = time.perf_counter() - began, costs_of(running.pid)
    alone = send_all(DOORS[name], running.addresses, [singles])
    return DoorFigures(
        Rate(spans, wall_s, at_last.cpu_s - at_first.cpu_s),
        acknowledged_s,
        {**percentiles(sent, "full speed"), **percentiles(alone, "alone")},
        (at_last.written_bytes - at_first.written_bytes) / spans,
    )


def as_json(raw: bytes) -> bytes:
    return json_of(ExportTraceServiceRequest.FromString(raw))


def percentiles(sent: Sent, when: str) -> dict[str, float]:
    cuts = statistics.quantiles(sent.latencies_s, n=100, method="inclusive")
    return {f"p50 {when}": cuts[49] * 1e3, f"p99 {when}": cuts[98] * 1e3}


# ---- everything


def figures(sizes: Sizes) -> dict[str, Any]:
    with collector() as running:
        warm = list(islice(requests_of("warm:1", sizes.spans), 4))
        send_all(DOORS["gRPC"], running.addresses, [[raw] for raw in warm])
        running.wait_until_stored(len(warm) * sizes.spans)
        doors = {name: door_figures(running, name, sizes) for name in DOORS}
        peak = costs_of(running.pid).memory_peak_bytes
    sample = list(islice(requests_of("sample:1", sizes.spans), sizes.requests // 4))
    some, spans = sample[: max(1, len(sample) // 10)], sizes.spans
    references = {
        "walked in Python": best_of(sizes.repeats, len(some) * spans, lambda: walk(some)),
        "walked and validated in Python": best_of(sizes.repeats, len(some) * spans, lambda: walk_and_validate(some)),
    }
    batches = [sample[n : n + sizes.batch_requests] for n in range(0, len(sample), sizes.batch_requests)]
    with tempfile.TemporaryDirectory() as directory:
        engine = engine_figures(Path(directory), batches, sizes.repeats)
    references |= {
        "decoded and inserted by the engine alone": engine.plain,
        "the same by the collector's views": engine.decoded,
        "inserted as Arrow": engine.arrow,
    }
    return {
        "doors": doors,
        "references": references,
        "memory_peak_bytes": peak,
        "request_bytes_per_execution": len(sample[0]) / spans,
        "ratios": ratios(doors, references),
    }


def ratios(doors: dict[str, DoorFigures], references: dict[str, Rate]) -> dict[str, float]:
    """Door to reference, by executions a second and by executions for each second of CPU time.

    The references use one core, the collector as many as there are.
    """
    return {
        f"{door} / {name}, {unit}": getattr(doors[door].rate, figure) / getattr(references[name], figure)
        for door in ("gRPC", "HTTP protobuf")
        for name in ("walked in Python", "walked and validated in Python", "decoded and inserted by the engine alone")
        for unit, figure in (("a second", "per_s"), ("per core-second", "per_core_s"))
    }


def show(measured: dict[str, Any], console: Console) -> None:
    table = Table(title="Executions into the collector", caption=machine())
    for column in ("", "a second", "per core-second", "ack p50/p99 ms", "alone p50/p99 ms", "bytes written"):
        table.add_column(column, justify="left" if not column else "right")
    for name, door in measured["doors"].items():
        ack = door.latency_ms
        table.add_row(
            name,
            f"{door.rate.per_s:,.0f}",
            f"{door.rate.per_core_s:,.0f}",
            f"{ack['p50 full speed']:.0f} / {ack['p99 full speed']:.0f}",
            f"{ack['p50 alone']:.0f} / {ack['p99 alone']:.0f}",
            f"{door.written_bytes:,.0f}",
        )
    for name, rate in measured["references"].items():
        table.add_row(name, f"{rate.per_s:,.0f}", f"{rate.per_core_s:,.0f}")
    console.print(table)
    for name, ratio in measured["ratios"].items():
        console.print(f"{name}: {ratio:.2f}")
    console.print(f"peak memory of the collector: {measured['memory_peak_bytes'] / 1e6:,.0f} MB")


def machine() -> str:
    return f"{platform.machine()}, {platform.python_version()}, {time.strftime('%Y-%m-%d')}"


def results(quick: bool) -> Iterable[Result]:
    """As `tests.benchmarks.report` asks for: what the collector takes, beside parsing and inserting alone."""
    sizes = Sizes(requests=64, singles=10, batch_requests=8, repeats=1) if quick else Sizes()
    measured = figures(sizes)
    for door, seen in measured["doors"].items():
        row = partial(_row, n=seen.rate.spans)
        for name in COMPARED:
            reference = measured["references"][name].per_core_s
            yield row(f"{door}, against {name}", seen.rate.per_core_s, reference, "executions per CPU-second")
        yield row(f"{door}, stored", seen.rate.per_s, None, "executions/s")
        yield row(f"{door}, acknowledged at full speed, p99", seen.latency_ms["p99 full speed"], None, "ms")
        yield row(f"{door}, acknowledged alone, p99", seen.latency_ms["p99 alone"], None, "ms")
    peak = measured["memory_peak_bytes"]
    spans = sum(seen.rate.spans for seen in measured["doors"].values())
    yield _row("memory of the collector, peak, against its bound", peak, MEMORY_BOUND_BYTES, "bytes", n=spans)


def _row(name: str, ours: float, reference: float | None, unit: str, *, n: int) -> Result:
    return Result.of(f"ingest: {name}", ours, reference, unit, n, "chdb", "grpcio", "protobuf")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, default=Path("build/bench-ingest.json"), help="where the figures go")
    parser.add_argument("--requests", type=int, default=Sizes().requests, help="requests of 500 through each door")
    parser.add_argument("--minutes", type=float, default=0.0, help="a soak of so long, instead")
    options = parser.parse_args()
    console = Console(width=140)
    wrong: list[str] = []
    if options.minutes:
        measured = soak(collector(), options.minutes, 5.0, console.print)
        console.print({name: value for name, value in measured.items() if name != "curve"})
        wrong = complaints(measured)
    else:
        measured = figures(Sizes(requests=options.requests))
        show(measured, console)
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_bytes(orjson.dumps(json.loads(json.dumps(measured)), option=orjson.OPT_INDENT_2))
    if measured["memory_peak_bytes"] > MEMORY_BOUND_BYTES:
        wrong.append(f"the collector took {measured['memory_peak_bytes'] / 1e6:,.0f} MB: above its bound")
    if wrong:
        raise SystemExit("; ".join(wrong))


if __name__ == "__main__":
    main()
