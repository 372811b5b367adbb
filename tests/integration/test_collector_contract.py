"""ClickHouse refuses, stores and sets aside exactly what the contract says, case by case."""

from collections.abc import Mapping
from typing import Any

import pytest
from clickhouse_connect.driver.client import Client

from collector.acceptance import Outcome
from collector.request_store import ReceivedRequest, RequestStore
from engine_hooks.contract.attributes import RESOURCE_ATTRIBUTES, SPAN_ATTRIBUTES
from engine_hooks.contract.names import column_of
from tests.fixtures.contract_cases import (
    CASES,
    GOOD_ATTRIBUTES,
    GOOD_RESOURCE,
    OTHER_SPAN_NAMES,
    STORED,
    SpanCase,
    attributes_of,
    request_of,
    resource_of_case,
    span_of,
)

ARRIVED_UNIX_MS = 4_000_000_000_000
"""Far from any expiry."""


def store_each(client: Client, cases: tuple[SpanCase, ...]) -> dict[str, Outcome]:
    """One request for each case, all in one insert; the outcomes by the number of the case."""
    store = RequestStore(client)
    store.insert([ReceivedRequest(str(n), request_of([case]), ARRIVED_UNIX_MS) for n, case in enumerate(cases)])
    return store.outcomes(str(n) for n in range(len(cases)))


def test_every_case_of_the_contract(clickhouse: Client) -> None:
    outcomes = store_each(clickhouse, CASES)
    wrong = {
        case.name: (case.reason, outcomes[str(n)])
        for n, case in enumerate(CASES)
        if outcomes[str(n)]
        != (Outcome(refused={case.reason: 1}) if case.reason else Outcome(1, clock_trouble=int(case.clock_trouble)))
    }
    assert not wrong


def expected_row(case: SpanCase) -> dict[str, Any]:
    """The columns that a stored case must have."""
    span, attributes, resource = span_of(case), attributes_of(case), resource_of_case(case)
    sent = {column_of(key): value for key, value in (attributes | resource).items()}
    columns = [attribute.column for attribute in (*RESOURCE_ATTRIBUTES, *SPAN_ATTRIBUTES)]
    return {
        **{column: tuple(sent[column]) if isinstance(sent[column], list) else sent[column] for column in columns if column in sent},
        "trace_id": span["trace_id"],
        "span_id": span["span_id"],
        "duration_ns": span["end_time_unix_nano"] - span["start_time_unix_nano"],
        "started_at_ns": span["start_time_unix_nano"],
        **case.stored,
    }  # fmt: skip


@pytest.mark.parametrize("case", STORED, ids=lambda case: case.name)
def test_what_is_stored_is_what_was_sent(clickhouse: Client, case: SpanCase) -> None:
    store_each(clickhouse, (case,))
    (row,) = clickhouse.query(
        "SELECT *, toUnixTimestamp64Nano(started_at) AS started_at_ns FROM graph_executions"
    ).named_results()
    expected = expected_row(case)
    if any(value == "" for value in case.attributes.values()):
        expected = {key: value for key, value in expected.items() if value != ""}
    assert {column: _plain(row[column]) for column in expected} == expected


def _plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def test_other_spans_are_accepted_not_refused(clickhouse: Client) -> None:
    cases = tuple(SpanCase(name, span={"name": name}, attributes={"graph.name": None}) for name in OTHER_SPAN_NAMES)
    assert set(map(repr, store_each(clickhouse, cases).values())) == {repr(Outcome(other_spans=1))}
    assert clickhouse.command("SELECT count() FROM graph_executions") == 0


def test_of_several_troubles_the_first_of_the_list_is_given(clickhouse: Client) -> None:
    changes: tuple[tuple[str, Mapping[str, Any]], ...] = (
        ("graph.name is missing", {"graph.name": None, "cell.position": "3", "graph.gpu_time_ns": -1}),
        ("graph.kind is unknown", {"graph.kind": "bogus", "cell.id": 7, "batch.lanes": -1}),
        ("graph.gpu_time_ns is negative", {"graph.gpu_time_ns": -1, "graph.wall_time_ns": -1}),
        ("scheduler.candidate_graphs is not an array of strings", {"scheduler.candidate_graphs": [1], "cell.arm": 1}),
    )
    cases = tuple(SpanCase(reason, reason, attributes) for reason, attributes in changes)
    outcomes = store_each(clickhouse, cases)
    assert [list(outcomes[str(n)].refused) for n in range(len(cases))] == [[case.reason] for case in cases]


def test_empty_values_count_as_not_sent(clickhouse: Client) -> None:
    cases = (
        SpanCase("a time", "graph.gpu_time_ns is missing", {"graph.gpu_time_ns": ""}),
        SpanCase("a name", "graph.name is missing", {"graph.name": []}),
        SpanCase("a count", None, {"graph.queue_depth": "", "batch.lanes": []}),
        SpanCase("an array", None, {name: "" for name in GOOD_ATTRIBUTES if "candidate" in name}),
        SpanCase("a resource's", None, resource=dict.fromkeys(set(GOOD_RESOURCE) - {"service.instance.id"}, "")),
    )
    outcomes = store_each(clickhouse, cases)
    assert [outcomes[str(n)].refused for n in range(5)] == [{case.reason: 1} if case.reason else {} for case in cases]


def test_decoded_spans_have_the_columns_of_graph_executions(clickhouse: Client) -> None:
    def columns(table: str) -> set[str]:
        rows = clickhouse.query(
            "SELECT name FROM system.columns WHERE database = currentDatabase() AND table = {table:String}"
            " AND default_kind != 'ALIAS'",
            parameters={"table": table},
        ).result_rows
        return {name for (name,) in rows}

    own = {"request_id", "is_graph_execution", "refusal", "clock_trouble"}
    assert columns("decoded_spans") - own == columns("graph_executions")
    assert columns("decode_otlp") == columns("decoded_spans")
    assert columns("store_executions") == columns("graph_executions")


def test_the_same_batch_again_is_stored_once(clickhouse: Client) -> None:
    store = RequestStore(clickhouse)
    batch = [ReceivedRequest("one", request_of(STORED[:3]), ARRIVED_UNIX_MS), ReceivedRequest("two", request_of(STORED[:1]), ARRIVED_UNIX_MS)]  # fmt: skip
    for _ in range(3):
        store.insert(batch)
    assert clickhouse.command("SELECT count() FROM graph_executions") == 4
    assert store.outcomes(["one", "two"]) == {"one": Outcome(3), "two": Outcome(1)}
