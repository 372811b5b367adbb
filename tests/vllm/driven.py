"""Runs real vLLM by its own interpreter, and asks the collector what it stored of it."""

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any, NamedTuple

from clickhouse_connect.driver.client import Client

from tests.fixtures.running import ROOT, Addresses

VLLM_PYTHON = ROOT / ".venv-vllm/bin/python"
STORED_WITHIN_S = 30.0
RUN_TIMEOUT_S = 900


class Stored(NamedTuple):
    """The rows that the collector has of one engine, by sequence."""

    rows: list[dict[str, Any]]

    def sums(self) -> dict[str, int]:
        """The figures that vLLM counts too."""
        return {
            name: sum(row[f"batch_tokens_{name}"] or 0 for row in self.rows)
            for name in ("drafted", "accepted", "emitted")
        }

    def phase(self, phase: dict[str, Any]) -> list[dict[str, Any]]:
        """The rows of one act of the scenario `corners`."""
        return [row for row in self.rows if phase["first"] <= row["graph_sequence"] < phase["after"]]


class Vllm:
    """Runs scenarios of `tests/vllm/engine.py`."""

    def __init__(self, model: Path, directory: Path, addresses: Addresses, client: Client) -> None:
        self._model = model
        self._directory = directory
        self._endpoint = addresses.otlp_grpc
        self._client = client

    def run(self, *scenarios: str, hooks: bool = True, own_process: bool = False) -> dict[str, Any]:
        """What the scenarios saw, by name. With hooks, the endpoint's variable is all that is set."""
        result = self._directory / f"{'-'.join(scenarios)}-{hooks}.json"
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "TACHOGRAPH_"))}
        environment = inherited | {"VLLM_ENABLE_V1_MULTIPROCESSING": str(int(own_process))}
        if hooks:
            environment["OTEL_EXPORTER_OTLP_ENDPOINT"] = self._endpoint
        finished = subprocess.run(
            [VLLM_PYTHON, "-m", "tests.vllm.engine", ",".join(scenarios), self._model, result],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=RUN_TIMEOUT_S,
            check=False,
        )
        assert finished.returncode == 0, finished.stderr[-5000:]
        seen: dict[str, Any] = json.loads(result.read_text())
        return seen

    def stored(self, instance: str, count: int) -> Stored:
        """The rows of one engine, once there are `count`."""
        deadline = time.monotonic() + STORED_WITHIN_S
        while True:
            result = self._client.query(
                "SELECT * FROM graph_executions WHERE service_instance_id = {instance:String} ORDER BY graph_sequence",
                parameters={"instance": instance},
            )
            rows = list(result.named_results())
            if len(rows) >= count or time.monotonic() > deadline:
                return Stored(rows)
            time.sleep(0.2)

    def instances(self) -> list[str]:
        """Every engine that the collector has heard of, in the order in which they began."""
        rows = self._client.query(
            "SELECT service_instance_id FROM graph_executions GROUP BY service_instance_id ORDER BY min(started_at)"
        ).result_rows
        return [row[0] for row in rows]
