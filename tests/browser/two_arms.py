"""A benchmark of two arms over three days, in a store that pages can read: its outcome is known.

On `gpu-node-001` the second arm is 3 % faster and none of its cells is stuck, on `gpu-node-002` the arms do not
differ; there P128 takes 8 % longer on the GPU from the eighth pair on. The last cell lost executions, so that it is
left out of the comparison.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from clickhouse_connect.driver.client import Client

from tests.fixtures.databases import database, read_only_url

BEGAN = datetime(2026, 11, 2, tzinfo=UTC)
PAIRS = 14
EVERY = timedelta(hours=2, minutes=30)
"""Between the cells of a host."""
ROUNDS = 400
ROUND_S = 0.075
MS_NS = 1_000_000
GRAPHS = ("decode", "P128")
SLOWER_FROM = 16
"""The position from which P128 is slower on the second host."""


class ArmCell(NamedTuple):
    """What a cell is made of."""

    host: str
    arm: str
    position: int
    gain: float
    plain_fraction: float
    gpu_ns: int


@contextmanager
def two_arms_store(store: Client, data_dir: Path) -> Iterator[str]:
    """The URL of a fresh database with the benchmark in it."""
    with database(store) as name:
        store_arms(store)
        with read_only_url(name, data_dir) as url:
            yield url


def store_arms(client: Client) -> None:
    """Put the benchmark into the client's database."""
    rng = np.random.default_rng(7)
    rows = [row for cell in arm_cells(rng) for row in executions_of(cell, rng)]
    client.insert("new_executions", [list(row.values()) for row in rows], column_names=list(rows[0]))


def arm_cells(rng: np.random.Generator) -> Iterator[ArmCell]:
    """Every cell, in mirrored order on each host."""
    for number, host in enumerate(("gpu-node-001", "gpu-node-002")):
        for pair in range(PAIRS):
            for place, arm in enumerate(("before", "after") if pair % 2 == 0 else ("after", "before")):
                position = 2 * pair + place
                is_faster = arm == "after" and number == 0
                stuck = arm == "before" and number == 0 and pair % 3 == 0
                slower = 1.08 if number == 1 and position >= SLOWER_FROM else 1.0
                yield ArmCell(
                    host=host,
                    arm=arm,
                    position=position,
                    gain=(1.03 if is_faster else 1.0) * float(rng.normal(1, 0.003)),
                    plain_fraction=0.8 if stuck else 0.05,
                    gpu_ns=int(28.5 * MS_NS * slower * rng.normal(1, 0.004)),
                )


def executions_of(cell: ArmCell, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """The rounds of a cell, one row each."""
    began_ns = int((BEGAN + cell.position * EVERY).timestamp()) * 1_000_000_000
    lost = set(range(40, 50)) if (cell.host, cell.position) == ("gpu-node-002", 2 * PAIRS - 1) else set()
    for number in range(ROUNDS):
        is_plain = bool(rng.random() < cell.plain_fraction)
        gpu_ns = int((cell.gpu_ns if not is_plain else 14.1 * MS_NS) * rng.normal(1, 0.006))
        late = rng.random() < 0.02
        handoff_ns = int(MS_NS * (rng.uniform(5, 15) if late else rng.uniform(0.2, 0.5)))
        estimate_ns = int(gpu_ns * rng.normal(1.02, 0.004))
        if number not in lost:
            yield execution(cell, number, began_ns, is_plain) | {
                "graph_gpu_time_ns": gpu_ns,
                "graph_wall_time_ns": gpu_ns + handoff_ns,
                "duration_ns": gpu_ns + handoff_ns + MS_NS,
                "scheduler_estimate_ns": estimate_ns,
                "scheduler_candidate_estimates_ns": [int(14.2 * MS_NS), int(1.01 * cell.gpu_ns)],
                "batch_tokens_emitted": int(
                    180 * cell.gain * (0.95 if cell.plain_fraction > 0.3 else 1) + rng.random()
                ),
            }


def execution(cell: ArmCell, number: int, began_ns: int, is_plain: bool) -> dict[str, Any]:
    """What rounds of a cell have in common, and which of them this is."""
    return {
        "service_instance_id": f"{cell.host}-run",
        "started_at": began_ns + int(number * ROUND_S * 1e9),
        "trace_id": f"{cell.host[-3:]}{cell.position:013}".encode(),
        "span_id": f"{number:08}".encode(),
        "service_name": "engine",
        "host_name": cell.host,
        "engine_name": "sim",
        "engine_version": "1.0",
        "engine_package": "main",
        "engine_recipe": "c32",
        "graph_name": GRAPHS[not is_plain],
        "graph_kind": "plain_decode" if is_plain else "speculative",
        "graph_purpose": "ordinary",
        "graph_sequence": cell.position * 1000 + number,
        "graph_queue_depth": 0,
        "batch_lanes": 32,
        "scheduler_cost_model": "exposed_mean",
        "scheduler_expected_tokens": 70.0,
        "scheduler_candidate_graphs": list(GRAPHS),
        "scheduler_candidate_expected_tokens": [32.0, 70.0],
        "cell_id": f"bench-{cell.host[-1]}-{cell.position:02}",
        "cell_arm": cell.arm,
        "cell_position": cell.position,
        "cell_concurrency": 32,
    }
