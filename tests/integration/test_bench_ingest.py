"""`make bench-ingest` in small: it runs, and its figures are of what it says."""

import json
import subprocess
import sys
from pathlib import Path

from tests.fixtures.running import ROOT

SMALL = """
import json, sys
from pathlib import Path
from rich.console import Console
from tests.benchmarks.bench_ingest import Sizes, collector, figures, show
from tests.benchmarks.ingest_soak import soak

sizes = Sizes(spans=20, senders=4, requests=40, singles=3, batch_requests=5, repeats=1)
measured = figures(sizes)
show(measured, Console(file=sys.stderr))
Path(sys.argv[1]).write_text(json.dumps({"figures": measured, "soak": soak(collector(), 0.05, 1.0, lambda line: None)}))
"""


def test_the_benchmark_of_ingestion_in_small(tmp_path: Path) -> None:
    """In a process of its own, as it opens an engine."""
    file = tmp_path / "figures.json"
    done = subprocess.run(
        [sys.executable, "-c", SMALL, str(file)], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    measured = json.loads(file.read_text())
    figures, soak = measured["figures"], measured["soak"]
    rates = {name: door[0] for name, door in figures["doors"].items()} | figures["references"]
    assert {name: spans for name, (spans, _, _) in rates.items()} == {
        "gRPC": 800,
        "HTTP protobuf": 800,
        "HTTP JSON": 80,
        "walked in Python": 20,
        "walked and validated in Python": 20,
        "decoded and inserted by the engine alone": 200,
        "the same by the collector's views": 200,
        "inserted as Arrow": 200,
    }
    assert all(wall_s > 0 and cpu_s >= 0 for _, wall_s, cpu_s in rates.values())
    assert len(figures["ratios"]) == 12
    assert 0 < figures["memory_peak_bytes"] < 1_500_000_000
    assert soak["acknowledged"] == soak["stored"] > 0
    assert soak["curve"]
