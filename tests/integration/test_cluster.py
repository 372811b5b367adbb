"""The cluster's schema at work, as far as one machine can: a cluster of one host, against the plain schema."""

import json
import subprocess
import sys
from pathlib import Path

from collector.store.migrations import schema_files
from tests.fixtures.running import ROOT, free_addresses, tachograph


def test_through_distributed_tables_all_is_as_with_plain_ones(tmp_path: Path) -> None:
    """What is stored of requests that come twice, outcomes, rollups, and what every query says of a fleet."""
    command = [sys.executable, "-m", "tests.fixtures.one_host_cluster", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen["differing"] == {}
    cells_dropped, *left, executions_dropped = seen["overtaken"]
    assert (cells_dropped, len(left), executions_dropped) == (2, 1, "[2950]")
    assert left[0].endswith(", 50]")
    assert seen["views_astray"] == [[], ["fill_cell_graphs"]]
    sizes = seen["sizes"]
    assert sizes["record"] == 20_000
    assert (
        min(
            sizes[name]
            for name in ("outcomes", "executions", "cells", "stuck_plain", "graph_costs", "half_hours", "hours")
        )
        > 0
    )
    assert len(sizes) > 25
    assert seen["refused"] == [
        "database plain was made for one host: name another database for the cluster",
        "database clustered is on a cluster: name it by TACHOGRAPH_CLICKHOUSE_CLUSTER",
    ]


def test_the_schema_command_prints_both_forms_and_applies_neither_to_the_embedded_store(tmp_path: Path) -> None:
    addresses = free_addresses(tmp_path)
    plain = tachograph(addresses, "schema").stdout
    clustered = tachograph(addresses, "schema", "--clickhouse-cluster", "fleet").stdout
    assert "ON CLUSTER" not in plain
    assert "CREATE TABLE IF NOT EXISTS tachograph.graph_executions_local ON CLUSTER 'fleet'" in clustered
    assert all(f"-- {file.name}\n" in plain and f"-- {file.name}\n" in clustered for file in schema_files())
    refused = tachograph(addresses, "schema", "--apply")
    assert refused.returncode == 2
    assert refused.stderr.count("\n") == 1
    assert "--apply wants --clickhouse-url" in refused.stderr
    wrong = tachograph(addresses, "schema", "--clickhouse-cluster", "my fleet")
    assert (wrong.returncode, wrong.stdout) == (1, "")
    assert "'my fleet' cannot be used as a name here" in wrong.stderr
