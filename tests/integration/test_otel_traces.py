"""The door of the standard pipeline: rows of the OpenTelemetry Collector's ClickHouse exporter become executions."""

from collections import Counter
from typing import Any, Final

import pytest
from clickhouse_connect.driver.client import Client

from collector.store.migrations import apply_schema, schema_files
from collector.store.request_store import ReceivedRequest, RequestStore
from tests.fixtures.contract_cases import CASES, GOOD_RESOURCE, OTHER_SPAN_NAMES, SpanCase, request_of
from tests.fixtures.exporter_rows import insert

TYPES: Final = (
    " is not a string",
    " is not an integer",
    " is not a boolean",
    " is not a number",
    " is not an array of",
)
"""What is said of a value of another type: as text, it may look like one of the right type."""


@pytest.fixture
def door(clickhouse: Client) -> Client:
    """A store with the exporter's table and the view behind it."""
    apply_schema(clickhouse, schema_files(otel_traces=True))
    return clickhouse


PARSED: Final = tuple(case for case in CASES if "UTF-8" not in (case.reason or ""))
"""Python's protobuf reads no invalid UTF-8, of which an exporter's row would have to be made."""


def numbered(cases: tuple[SpanCase, ...]) -> list[SpanCase]:
    """Different spans, save those that are about the span's id."""
    return [case._replace(span={"span_id": n.to_bytes(8, "big"), **case.span}) for n, case in enumerate(cases, 1)]


def outcome(client: Client) -> tuple[int, int, dict[str, int]]:
    """Stored, deduplicated, refused."""
    query = (
        "SELECT sum(stored), sum(deduplicated), sumMap(refused) FROM request_outcomes WHERE request_id = 'otel_traces'"
    )
    (row,) = client.query(query).result_rows
    return tuple(row)


def executions(client: Client) -> list[dict[str, Any]]:
    """Without lists under `engine.`: OTLP's are dropped, the exporter's are text like any other."""
    rows = client.query(
        "SELECT * EXCEPT received_at FROM graph_executions ORDER BY service_instance_id, span_id, started_at"
        " SETTINGS asterisk_include_alias_columns = 1"
    )
    found = list(rows.named_results())
    for row in found:
        row["engine_attributes"].pop("list", None)
    return found


def test_the_cases_of_the_contract_fare_as_at_the_other_doors(door: Client) -> None:
    expected = Counter(case.reason for case in PARSED if case.reason)
    insert(door, request_of(numbered(PARSED)))
    stored, _, refused = outcome(door)
    otherwise, instead = expected - Counter(refused), Counter(refused) - expected
    assert {reason for reason in otherwise if not any(lost in reason for lost in TYPES)} == set()
    assert {reason for reason in instead if not reason.endswith((" is unknown", "differ in length"))} == set()
    assert stored == len(PARSED) - expected.total() + (otherwise.total() - instead.total())
    assert expected.total() > 2 * otherwise.total()


def test_beside_others_that_are_refused_the_good_are_stored_as_by_otlp(door: Client) -> None:
    good = numbered(tuple(case for case in CASES if not case.reason))
    RequestStore(door).insert([ReceivedRequest.of("1", request_of(good), 4_000_000_000_000)])
    by_otlp = executions(door)
    for table in ("graph_executions", "request_outcomes"):
        door.command(f"TRUNCATE TABLE {table}")
    insert(door, request_of([*good, *(case for case in PARSED if case.reason and case.reason.endswith("is missing"))]))
    assert executions(door) == by_otlp


def test_a_violation_neither_stops_the_insert_nor_goes_uncounted(door: Client) -> None:
    odd = {"scheduler.candidate_graphs": '["P128", ', "graph.sequence": "9" * 40, "scheduler.estimate_ns": "1e400"}
    cases = [SpanCase("a", attributes={name: text}) for name, text in odd.items()]
    insert(door, request_of([*cases, SpanCase("good"), SpanCase("other", span={"name": OTHER_SPAN_NAMES[0]})]))
    assert door.command("SELECT count() FROM otel_traces") == len(cases) + 2
    stored, _, refused = outcome(door)
    assert (stored, sum(refused.values())) == (1, len(cases))


def test_what_the_exporter_sends_again_is_stored_once(door: Client) -> None:
    cases = numbered((SpanCase("one"), SpanCase("two"), SpanCase("three")))
    insert(door, request_of(cases[:2]))
    insert(door, request_of(cases))
    assert outcome(door) == (3, 2, {})
    assert len(executions(door)) == 3


def test_engines_in_one_insert_keep_their_resources(door: Client) -> None:
    engines = [
        GOOD_RESOURCE | {"service.instance.id": f"engine:{n % 7}", "engine.slots": str(n % 7)} for n in range(50)
    ]
    insert(door, request_of(numbered(tuple(SpanCase(str(n), resource=engine) for n, engine in enumerate(engines)))))
    query = "SELECT DISTINCT service_instance_id, engine_attributes['slots'] FROM graph_executions ORDER BY ALL"
    assert door.query(query).result_rows == [(f"engine:{n}", str(n)) for n in range(7)]
