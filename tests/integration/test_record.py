"""Rows of a cell read back as the records they were, with what the engine did before it."""

import pytest
from clickhouse_connect.driver.client import Client

from engine_hooks.contract.names import FeedbackReason, GpuTimeSource
from queries.errors import AmbiguousCellError, UnknownCellError
from queries.record import executions_of
from tests.fixtures.query_rows import ENGINE, believing, insert, round_of

OTHER = ENGINE._replace(service_instance_id="engine-2", gpu_ids=("a", "b"), engine_attributes={"all_reduce": "nccl"})
BEFORE = [round_of(n, n * 30 - 60_000.001, "P128", 28.25) for n in range(2)]
FULL = round_of(
    7,
    0.000123,
    "P128",
    28,
    cell_id="bench",
    cell_position=3,
    graph_gpu_start_offset_ns=5,
    graph_gpu_time_source=GpuTimeSource.CUPTI,
    graph_completion_feedback=True,
    graph_completion_feedback_reason=FeedbackReason.GRAMMAR,
    batch_verification_budget=128,
    scheduler_estimate_ns=28,
    scheduler_expected_tokens=0.1 + 0.2,
    **believing({"P128": (28.5, 70.1), "decode": (13, 32)}),
)
CELL = [FULL, round_of(8, 30, "decode", 13, cell_id="bench")]


def test_records_come_back_as_they_were(clickhouse: Client, clickhouse_url: str) -> None:
    insert(clickhouse, [*CELL, *BEFORE], OTHER)
    read = executions_of(clickhouse_url, "engine-2", "bench")
    assert read == (OTHER, "bench", tuple(CELL), tuple(BEFORE), 0)
    assert executions_of(clickhouse_url, "", "bench", history_s=60).before == tuple(BEFORE[1:])
    assert executions_of(clickhouse_url, "", "bench", history_s=0).before == ()


def test_a_cell_is_of_one_engine(clickhouse: Client, clickhouse_url: str) -> None:
    insert(clickhouse, CELL)
    insert(clickhouse, CELL, OTHER)
    with pytest.raises(AmbiguousCellError, match="engine-1, engine-2"):
        executions_of(clickhouse_url, "", "bench")
    with pytest.raises(UnknownCellError, match="no execution of cell absent of engine engine-1"):
        executions_of(clickhouse_url, "engine-1", "absent")
    assert executions_of(clickhouse_url, "engine-1", "bench").engine == ENGINE
