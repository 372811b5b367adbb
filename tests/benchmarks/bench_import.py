"""What importing a large profile takes: time and memory, for both profilers, of files made here. `make bench-import`.

Each file is read by a process of its own, whose memory is its peak.
"""

import argparse
import gzip
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from engine_hooks.adapters.profile_files import imported
from engine_hooks.contract.names import GraphKind
from tests.fixtures.nsight_exports import ExportMaker, serialized

MB: Final = 1_000_000
NODES: Final = 400
"""Kernels in each graph, on three streams."""
EAGER: Final = 40
"""Launches outside graphs between two graphs."""
KERNEL_NAMES: Final = tuple(f"void gemm_kernel<float, {tile}, 128, true>(Params)" for tile in range(200))
ROWS_AT_ONCE: Final = 50_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mb", type=int, default=500, help="size of each file, unpacked")
    parser.add_argument("--read", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.read:
        print(json.dumps(reading(chosen.read)))  # noqa: T201
        return
    table = Table("file", *("MB", "operations", "executions", "s", "CPU s", "peak MB", "bytes/operation"))
    with tempfile.TemporaryDirectory(prefix="bench-import-") as folder:
        for path in made(Path(folder), chosen.mb * MB):
            command = [sys.executable, "-m", "tests.benchmarks.bench_import", "--read", str(path)]
            found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            cells = [
                path.name,
                f"{path.stat().st_size / MB:.0f}",
                f"{found['operations']:,}",
                f"{found['executions']:,}",
            ]
            cells += [f"{found[name]:.1f}" for name in ("wall_s", "cpu_s", "peak_mb")]
            table.add_row(*cells, f"{(found['peak_mb'] - found['before_mb']) * MB / found['operations']:.0f}")
            path.unlink()
    Console().print(table)


def reading(path: Path) -> dict[str, float]:
    """Reads one file as `tachograph import --dry-run` does."""
    before_mb = peak_mb()
    wall, cpu = time.perf_counter(), time.process_time()
    trace = imported(path, GraphKind.MIXED)
    return {
        "wall_s": time.perf_counter() - wall,
        "cpu_s": time.process_time() - cpu,
        "before_mb": before_mb,
        "peak_mb": peak_mb(),
        "operations": trace.operations,
        "executions": sum(len(instance.executions) for instance in trace.instances),
    }


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / MB


def made(folder: Path, size_bytes: int) -> Iterator[Path]:
    """One file after the other; the packed one is made of the plain one."""
    packed = folder / "kineto.json.gz"
    plain = kineto(folder / "kineto.json", size_bytes)
    with plain.open("rb") as text, gzip.open(packed, "wb", compresslevel=1) as file:
        shutil.copyfileobj(text, file)
    yield plain
    yield packed
    yield nsight(folder / "nsight.sqlite", size_bytes)


def work() -> Iterator[tuple[int, int, bool, int]]:
    """Without end: correlation id, start in us, whether it launches a graph, device."""
    correlations = count(1)
    for step in count():
        start_us = step * 10_000
        yield next(correlations), start_us, True, step % 2
        for number in range(EAGER):
            yield next(correlations), start_us + 5_000 + number * 20, False, step % 2


def kineto(path: Path, size_bytes: int) -> Path:
    with path.open("w") as file:
        file.write('{"schemaVersion": 1, "baseTimeNanoseconds": 1764000000000000000, "traceEvents": [\n')
        for correlation, start_us, is_graph, device in work():
            events = kineto_events(correlation, start_us, device, is_graph)
            file.write(",\n".join(map(json.dumps, events)))
            if file.tell() > size_bytes:
                break
            file.write(",\n")
        file.write('], "traceName": "made"}')
    return path


def kineto_events(correlation: int, start_us: int, device: int, is_graph: bool) -> Iterator[dict[str, Any]]:
    name = "cudaGraphLaunch" if is_graph else "cudaLaunchKernel"
    ids = {"External id": correlation, "cbid": 211, "correlation": correlation}
    common = {"ph": "X", "pid": 1, "tid": 1}
    yield {
        **common,
        "cat": "cpu_op",
        "name": "aten::mm",
        "ts": start_us,
        "dur": 12,
        "args": {"External id": correlation},
    }
    yield {**common, "cat": "cuda_runtime", "name": name, "ts": start_us + 2, "dur": 6, "args": ids}
    for node in range(NODES if is_graph else 1):
        stream = 7 + node % 3
        shape = {"grid": [node % 90 + 1, 1, 1], "block": [128, 1, 1], "registers per thread": 64, "shared memory": 0}
        yield {
            "ph": "X",
            "cat": "kernel",
            "name": KERNEL_NAMES[node % len(KERNEL_NAMES)],
            "pid": device,
            "tid": stream,
            "ts": start_us + 40 + node * 10,
            "dur": 9.5,
            "args": {"device": device, "context": 1, "stream": stream, "correlation": correlation, **shape},
        }


def nsight(path: Path, size_bytes: int) -> Path:
    with ExportMaker(path, 1_764_000_000_000_000_000) as maker:
        names = [maker.string(name) for name in KERNEL_NAMES]
        maker.launch(1 << 31, 0, 10)  # Makes the table and the name of the call.
        graph, eager = maker.string("cudaGraphLaunch_v10000"), maker.string("cudaLaunchKernel_v7000")
        maker.table("CUPTI_ACTIVITY_KIND_KERNEL")
        submissions = work()
        while path.stat().st_size < size_bytes:
            batch = list(islice(submissions, ROWS_AT_ONCE // 10))
            maker.database.executemany(
                "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, 1, ?, ?, ?, 0, NULL)",
                ((s * 1000, s * 1000 + 6000, serialized(7 + d) | 1, c, graph if g else eager) for c, s, g, d in batch),
            )
            maker.database.executemany(
                "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES"
                " (?, ?, 0, 1, NULL, ?, ?, ?, ?, ?, NULL, 64, ?, 1, 1, 128, 1, 1, ?)",
                (
                    (
                        *((s + 40 + n * 10) * 1000 + edge for edge in (0, 9_500)),
                        *(7 + n % 3, c, serialized(7 + d)),
                        *(names[n % len(names)], names[n % len(names)], n % 90 + 1, n if g else None),
                    )
                    for c, s, g, d in batch
                    for n in range(NODES if g else 1)
                ),
            )
            maker.database.commit()
    return path


if __name__ == "__main__":
    main()
