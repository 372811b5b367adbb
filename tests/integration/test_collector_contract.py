"""ClickHouse refuses, stores and sets aside exactly what the contract says, case by case."""

from collections.abc import Mapping
from typing import Any

import pytest
from clickhouse_connect.driver.client import Client

from collector.acceptance import Outcome
from collector.store.request_store import ReceivedRequest, RequestStore
from engine_hooks.contract.attributes import RESOURCE_ATTRIBUTES, SPAN_ATTRIBUTES
from engine_hooks.contract.names import column_of
from engine_hooks.contract.span import EXECUTION_COLUMNS
from tests.fixtures.contract_cases import (
    CASES,
    GOOD_ATTRIBUTES,
    GOOD_RESOURCE,
    OTHER_SPAN_NAMES,
    STARTED_AT,
    STORED,
    SpanCase,
    attributes_of,
    request_of,
    resource_of_case,
    span_of,
)

ARRIVED_UNIX_MS = 4_000_000_000_000
"""Far from any expiry."""


def with_own_ids(cases: tuple[SpanCase, ...]) -> tuple[SpanCase, ...]:
    """The cases as different spans, save those that are about the span's id."""
    return tuple(
        case._replace(span={"span_id": number.to_bytes(8, "big"), **case.span}) for number, case in enumerate(cases, 1)
    )


def store_each(client: Client, cases: tuple[SpanCase, ...]) -> dict[str, Outcome]:
    """One request for each case, all in one insert; the outcomes by the number of the case."""
    store = RequestStore(client)
    cases = with_own_ids(cases)
    store.insert([ReceivedRequest.of(str(n), request_of([case]), ARRIVED_UNIX_MS) for n, case in enumerate(cases)])
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
    (case,) = with_own_ids((case,))
    store_each(clickhouse, (case,))
    (row,) = clickhouse.query(
        "SELECT *, toUnixTimestamp64Nano(started_at) AS started_at_ns FROM graph_executions"
        " SETTINGS asterisk_include_alias_columns = 1"
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
            "SELECT name FROM system.columns WHERE database = currentDatabase() AND table = {table:String}",
            parameters={"table": table},
        ).result_rows
        return {name for (name,) in rows}

    executions = columns("new_executions")
    assert executions == {*EXECUTION_COLUMNS, "received_at"}
    fate = {"request_id", "clock_trouble", "is_new", "is_own"}
    assert columns("judged_spans") == executions | fate | {"refusal"}
    assert columns("checked_spans") == executions | fate | {"is_graph_execution", "is_odd", "odd_resource", "span"}
    for view, table in (
        ("decode_otlp", "decoded_spans"),
        ("check_spans", "checked_spans"),
        ("set_odd_spans_apart", "odd_spans"),
        ("judge_odd_spans", "judged_spans"),
        ("store_executions", "new_executions"),
        ("store_judged_executions", "new_executions"),
    ):
        assert columns(view) == columns(table), view


SPANS = with_own_ids(STORED)
ODD = SpanCase("an integer as a double", attributes={"graph.sequence": 41.0}, span={"span_id": b"a double"})
"""Kept in the end, but not at the first look."""
BROKEN = SpanCase("broken", "graph.gpu_time_ns is negative", {"graph.gpu_time_ns": -1})


def received(request_id: str, *cases: SpanCase, later_ms: int = 0) -> ReceivedRequest:
    return ReceivedRequest.of(request_id, request_of(cases), ARRIVED_UNIX_MS + later_ms)


def test_the_same_batch_again_is_stored_once(clickhouse: Client) -> None:
    store = RequestStore(clickhouse)
    batch = [ReceivedRequest.of("one", request_of(SPANS[:3]), ARRIVED_UNIX_MS), ReceivedRequest.of("two", request_of(SPANS[3:4]), ARRIVED_UNIX_MS)]  # fmt: skip
    for _ in range(3):
        store.insert(batch)
    assert clickhouse.command("SELECT count() FROM graph_executions") == 4
    assert store.outcomes(["one", "two"]) == {"one": Outcome(3), "two": Outcome(1)}


def test_a_span_is_stored_once_whatever_requests_it_comes_in(clickhouse: Client) -> None:
    store = RequestStore(clickhouse)
    store.insert([received("first", *SPANS[:3], ODD)])
    store.insert([received("regrouped", SPANS[4], *SPANS[1:3], ODD, later_ms=700)])
    store.insert([received("with refused ones", SPANS[4], ODD, BROKEN, later_ms=900)])
    assert clickhouse.command("SELECT count(), uniqExact(span_id) FROM graph_executions") == ["5", "5"]
    assert store.outcomes(["first", "regrouped", "with refused ones"]) == {
        "first": Outcome(4),
        "regrouped": Outcome(1, deduplicated=3),
        "with refused ones": Outcome(deduplicated=2, refused={BROKEN.reason: 1}),
    }


def test_a_span_twice_in_one_batch_is_stored_once(clickhouse: Client) -> None:
    store = RequestStore(clickhouse)
    store.insert([received("one", SPANS[0], ODD, BROKEN), received("two", SPANS[0], ODD, SPANS[0], later_ms=1)])
    assert clickhouse.command("SELECT count() FROM graph_executions") == 2
    outcomes = store.outcomes(["one", "two"])
    assert sum(outcome.stored for outcome in outcomes.values()) == 2
    assert sum(outcome.deduplicated for outcome in outcomes.values()) == 3
    assert outcomes["one"].refused == {BROKEN.reason: 1}


def test_a_refused_span_does_not_stand_in_the_way_of_its_correction(clickhouse: Client) -> None:
    store = RequestStore(clickhouse)
    corrected = SpanCase("corrected")
    store.insert([received("wrong", BROKEN), received("right", corrected)])
    assert store.outcomes(["wrong", "right"]) == {"wrong": Outcome(refused={BROKEN.reason: 1}), "right": Outcome(1)}


def test_spans_of_two_instances_or_two_starts_may_share_an_id(clickhouse: Client) -> None:
    store = RequestStore(clickhouse)
    other = SpanCase("other", resource={"service.instance.id": "host2:4711"})
    later = SpanCase("later", span={"start_time_unix_nano": STARTED_AT + 1, "end_time_unix_nano": STARTED_AT + 2})
    for number, case in enumerate((SpanCase("one"), other, later)):
        store.insert([received(str(number), case, later_ms=number)])
    assert clickhouse.command("SELECT count() FROM graph_executions") == 3


@pytest.mark.parametrize("in_another_batch", [False, True])
def test_what_an_insert_that_failed_half_way_stored_counts_as_its_own(
    clickhouse: Client, in_another_batch: bool
) -> None:
    """The executions are in, their outcomes are not: the next attempt, in whatever batch, stores none of them again."""
    store = RequestStore(clickhouse)
    batch = [received("one", *SPANS[:2], ODD, BROKEN)]
    store.insert(batch, "as before")
    clickhouse.command("TRUNCATE TABLE request_outcomes")
    store.insert(batch, "another" if in_another_batch else "as before")
    assert clickhouse.command("SELECT count() FROM graph_executions") == 3
    if in_another_batch:
        assert store.outcomes(["one"]) == {"one": Outcome(3, refused={BROKEN.reason: 1})}


def test_what_an_insert_that_failed_half_way_recorded_does_not_keep_its_executions_out(clickhouse: Client) -> None:
    """The outcomes are in, the executions are not."""
    store = RequestStore(clickhouse)
    batch = [received("one", *SPANS[:2], ODD)]
    store.insert(batch)
    clickhouse.command("TRUNCATE TABLE graph_executions")
    store.insert(batch, "another token, as the truncated table remembers the first")
    assert clickhouse.command("SELECT count() FROM graph_executions") == 3
