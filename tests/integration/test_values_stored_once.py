"""What graph_executions keeps as a difference comes back as it was, whatever it was."""

import re
import struct
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import clickhouse_connect
import pytest
from clickhouse_connect.driver.client import Client
from hypothesis import given, settings
from hypothesis import strategies as st

from engine_hooks.contract.execution import GraphExecution
from engine_hooks.contract.span import EXECUTION_COLUMNS
from tests.benchmarks.bench_storage import KINDS, engines, store_ours
from tests.fixtures.contract_strategies import graph_executions
from tests.fixtures.databases import SERVER_URL, database
from tests.fixtures.query_rows import ENGINE, row_of

LARGEST: Final = 2**63 - 1
EXTREMES: Final = (-LARGEST - 1, -LARGEST, -1, 0, 1, LARGEST - 1, LARGEST)
INTEGERS: Final = st.sampled_from(EXTREMES) | st.integers(-LARGEST - 1, LARGEST) | st.integers(0, 60_000_000)
DOUBLES: Final = st.floats() | st.sampled_from((0.0, -0.0, 5e-324, 77.73043773433741))
GRAPHS: Final = ("decode", "P64", "P128", "")
DERIVED: Final = (
    "duration_ns",
    "graph_gpu_time_ns",
    "graph_wall_time_ns",
    "graph_gpu_start_offset_ns",
    "batch_tokens_accepted",
    "scheduler_estimate_ns",
    "scheduler_estimate_gpu_ns",
    "scheduler_expected_tokens",
)
"""The columns that are ALIAS over a difference."""


@st.composite
def rows(draw: st.DrawFn) -> dict[str, Any]:
    """The columns that tell one another, also as no contract allows: lists of different lengths, a graph that is no candidate."""
    optional = st.none() | INTEGERS
    duration_ns = draw(INTEGERS)
    # In nanoseconds, as the driver takes it. Rollups add the two up, and no span ends after 2262.
    started_at = draw(st.sampled_from((0, LARGEST)) | st.integers(0, LARGEST))
    return {
        "graph_name": draw(st.sampled_from(GRAPHS)),
        "started_at": min(started_at, LARGEST - max(duration_ns, 0)),
        "duration_ns": duration_ns,
        **{name: draw(INTEGERS) for name in ("graph_gpu_time_ns", "graph_wall_time_ns")},
        **{
            name: draw(optional)
            for name in (
                "graph_gpu_start_offset_ns",
                "batch_lanes",
                "batch_tokens_accepted",
                "batch_tokens_emitted",
                "scheduler_estimate_ns",
                "scheduler_estimate_gpu_ns",
                "scheduler_estimate_handoff_ns",
            )
        },
        "scheduler_expected_tokens": draw(st.none() | DOUBLES),
        "scheduler_candidate_graphs": draw(st.lists(st.sampled_from(GRAPHS), max_size=4)),
        "scheduler_candidate_estimates_ns": draw(st.lists(INTEGERS, max_size=4)),
        "scheduler_candidate_expected_tokens": draw(st.lists(DOUBLES, max_size=4)),
    }


@pytest.fixture(scope="module")
def kept(store: Client) -> Iterator[Client]:
    with database(store):
        yield store


def bits(value: Any) -> Any:
    """A double by its bits: NaN as itself, and -0.0 not as 0.0."""
    if isinstance(value, list | tuple):
        return [bits(one) for one in value]
    return struct.pack("<d", value).hex() if isinstance(value, float) else value


def stored_again(client: Client, columns: list[str], values: list[list[Any]]) -> list[list[Any]]:
    """What is read of rows that were put in, in their order."""
    client.command("TRUNCATE TABLE graph_executions")
    numbered = [[number, *row] for number, row in enumerate(values)]
    client.insert("new_executions", numbered, column_names=["graph_sequence", *columns])
    named = ", ".join(columns).replace("started_at", "toUnixTimestamp64Nano(started_at)")
    read = client.query(f"SELECT {named} FROM graph_executions ORDER BY graph_sequence")  # noqa: S608 -- our own columns
    return [list(row) for row in read.result_rows]


@given(st.lists(rows(), min_size=1, max_size=30))
@settings(max_examples=40, deadline=None)
def test_every_value_comes_back_bit_for_bit(kept: Client, drawn: list[dict[str, Any]]) -> None:
    values = [list(row.values()) for row in drawn]
    assert bits(stored_again(kept, list(drawn[0]), values)) == bits(values)


@given(st.lists(graph_executions(), min_size=1, max_size=10))
@settings(max_examples=10, deadline=None)
def test_so_does_every_column_of_an_execution(kept: Client, executions: list[GraphExecution]) -> None:
    columns = [name for name in EXECUTION_COLUMNS if name != "graph_sequence"]
    values = [
        [value for name, value in zip(EXECUTION_COLUMNS, row_of(execution, ENGINE), strict=True) if name in columns]
        for execution in executions
    ]
    assert bits(stored_again(kept, columns, values)) == bits(values)


def test_what_others_tell_takes_no_room_of_its_own(clickhouse: Client) -> None:
    kinds = dict(
        clickhouse.query(
            "SELECT name, default_kind FROM system.columns"
            " WHERE database = currentDatabase() AND table = 'graph_executions' AND default_kind = 'ALIAS'"
        ).result_rows
    )
    assert set(kinds) == {*DERIVED, "cell"}


def test_whoever_reads_everything_names_what_is_computed_and_needed() -> None:
    """`SELECT *` leaves ALIAS columns out, and what a later level asks of them is then not there: times, at any rate."""
    times = ("duration_ns", "graph_gpu_time_ns", "graph_wall_time_ns", "graph_gpu_start_offset_ns")
    found = 0
    for room in ("collector", "queries"):
        for path in Path(str(files(room))).rglob("*.sql"):
            for named in re.findall(
                r"SELECT\s+\*((?:(?!SELECT).)*)\bFROM graph_executions\b", path.read_text("utf-8"), re.S
            ):
                found += 1
                assert not [column for column in times if column not in named], path
    assert found >= 4


def test_a_question_about_wall_time_reads_nothing_else(clickhouse: Client) -> None:
    """An ALIAS is computed where it is asked for, out of the columns that it needs."""
    clickhouse.insert("new_executions", [["a"]], column_names=["service_instance_id"])
    plan = clickhouse.query("EXPLAIN header = 1 SELECT sum(graph_wall_time_ns) FROM graph_executions").result_columns[0]
    scan = "\n".join(plan).partition("ReadFromMergeTree")[2]
    assert "stored_free_end_ns" in scan
    assert not any(other in scan for other in ("scheduler_", "batch_", "rest", "started_at"))


@pytest.mark.skipif(bool(SERVER_URL), reason="a server's own profile says what SELECT * is there")
def test_whoever_asks_our_endpoint_for_everything_gets_the_contracts_columns(
    clickhouse: Client, clickhouse_url: str
) -> None:
    clickhouse.insert(
        "new_executions", [["a", 7, 9]], column_names=["service_instance_id", "graph_gpu_time_ns", "graph_wall_time_ns"]
    )
    with clickhouse_connect.get_client(dsn=clickhouse_url) as reader:
        (row,) = reader.query("SELECT * FROM graph_executions").named_results()
    assert row.keys() >= {*EXECUTION_COLUMNS, "received_at", "cell"}
    assert (row["graph_gpu_time_ns"], row["graph_wall_time_ns"]) == (7, 9)


def test_of_simulated_engines_of_every_kind_next_to_nothing_is_left_to_keep(clickhouse: Client) -> None:
    """If the recorder or the scheduler told them otherwise, they would cost their full size again."""
    for resource, executions in engines(len(KINDS), 40):
        store_ours(clickhouse, resource, executions)
    shares = clickhouse.query(
        """
        SELECT countIf(stored_estimate_rest_ns != 0) / count(), countIf(stored_estimate_gpu_rest_ns != 0) / count(),
            countIf(stored_expected_tokens_bits != 0) / count(), countIf(stored_accepted_rest != 0) / count(),
            countIf(stored_wall_over_gpu_ns != 0 AND graph_queue_depth > 0) / count(), count() > 5000
        FROM graph_executions
        """
    ).first_row
    assert shares[:3] == (0, 0, 0)
    assert shares[3] < 0.1
    assert shares[4] < 0.05
    assert shares[5]
