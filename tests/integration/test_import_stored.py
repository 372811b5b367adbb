"""Trace files through the collector's own gRPC door into the store: stored as read, and once."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from clickhouse_connect.driver.client import Client

from collector.receivers.otlp_grpc import GrpcReceiver
from collector.telemetry.metrics import CollectorMetrics
from engine_hooks.adapters.profile_files import imported
from engine_hooks.commands.import_traces import import_traces
from engine_hooks.contract.names import GraphKind
from tests.fixtures.doors import spooling
from tests.fixtures.nsight_exports import ExportMaker

COLUMNS = (
    "graph_name",
    "graph_kind",
    "graph_sequence",
    "graph_gpu_time_ns",
    "graph_wall_time_ns",
    "toUnixTimestamp64Nano(started_at)",
    "duration_ns",
    "graph_purpose",
    "graph_gpu_start_offset_ns",
    "graph_gpu_time_source",
    "graph_queue_depth",
    "graph_after_idle",
)
"""In the order of `GraphExecution`'s first fields; the others are not recorded by a trace."""


class Here(NamedTuple):
    """The one setting of the import."""

    otlp_endpoint: str


@pytest.fixture
def here(clickhouse: Client) -> Iterator[Here]:
    metrics = CollectorMetrics()
    with spooling(clickhouse, metrics) as writer:
        writer.start()
        receiver = GrpcReceiver(writer, metrics)
        try:
            yield Here(f"http://127.0.0.1:{receiver.start('127.0.0.1', 0)}")
        finally:
            receiver.stop()
            writer.stop()


def test_each_public_trace_is_stored_as_read_and_once(here: Here, clickhouse: Client, cases: Path) -> None:
    files = sorted((cases / "traces").glob("*.json.gz"))
    import_traces(here, files)
    import_traces(here, files)
    for file in files:
        (instance,) = imported(file, GraphKind.MIXED).instances
        stored = clickhouse.query(
            f"SELECT {', '.join(COLUMNS)} FROM graph_executions"  # noqa: S608
            " WHERE service_instance_id = {instance:String} ORDER BY graph_sequence",
            parameters={"instance": instance.resource.service_instance_id},
        )
        assert [tuple(row) for row in stored.result_rows] == [run[: len(COLUMNS)] for run in instance.executions]
        resource = clickhouse.query(
            "SELECT DISTINCT service_name, gpu_ids, engine_attributes FROM graph_executions"
            " WHERE service_instance_id = {instance:String}",
            parameters={"instance": instance.resource.service_instance_id},
        )
        ((service_name, gpu_ids, engine_attributes),) = resource.result_rows
        assert (service_name, tuple(gpu_ids)) == (instance.resource.service_name, instance.resource.gpu_ids)
        assert engine_attributes == instance.resource.engine_attributes
    assert clickhouse.query("SELECT count() FROM graph_executions").result_rows == [(12 + 1 + 25,)]


def test_both_profilers_go_down_the_same_way(here: Here, clickhouse: Client, cases: Path, tmp_path: Path) -> None:
    """One command, one file of each: an export of nsys stands where its session began, stored as read, and once."""
    session_ns = time.time_ns() - 10**9
    report = tmp_path / "report"
    with ExportMaker(report, session_ns) as maker:
        for replay in range(5):
            maker.launch(replay, 100 + 1_000 * replay, 200 + 1_000 * replay)
            maker.graph(replay, 300 + 1_000 * replay, 900 + 1_000 * replay)
    files = [report, cases / "traces" / "mi_sglang_1.json.gz"]
    import_traces(here, files)
    import_traces(here, files)
    (instance,) = imported(report, GraphKind.MIXED).instances
    stored = clickhouse.query(
        f"SELECT {', '.join(COLUMNS)} FROM graph_executions"  # noqa: S608
        " WHERE service_name = 'nsight' ORDER BY graph_sequence"
    )
    assert [tuple(row) for row in stored.result_rows] == [run[: len(COLUMNS)] for run in instance.executions]
    assert stored.result_rows[0][5] == session_ns + 100
    assert clickhouse.query("SELECT count() FROM graph_executions").result_rows == [(5 + 1,)]


def test_times_moved_to_now_are_stored_moved(here: Here, clickhouse: Client, cases: Path) -> None:
    import_traces(here, [cases / "traces" / "mi_sglang_1.json.gz"], shift_to="now")
    age_s = clickhouse.query("SELECT dateDiff('second', max(started_at), now64(9)) FROM graph_executions")
    assert 0 <= age_s.result_rows[0][0] < 60
