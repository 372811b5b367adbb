"""Records to spans and back, ids, and columns."""

import re
from hashlib import blake2b
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine_hooks.contract import names
from engine_hooks.contract.attributes import RESOURCE_ATTRIBUTES, SPAN_ATTRIBUTES, Attribute
from engine_hooks.contract.execution import EngineResource, GraphExecution
from engine_hooks.contract.names import GraphKind
from engine_hooks.contract.span import (
    EXECUTION_COLUMNS,
    execution_of,
    resource_attributes,
    resource_of,
    span_attributes,
    span_id_of,
    span_of,
    trace_id_of,
)
from engine_hooks.contract.validation import span_refusal
from engine_hooks.errors import ContractError
from tests.fixtures.contract_cases import GOOD_ATTRIBUTES, GOOD_RESOURCE, STARTED_AT
from tests.fixtures.contract_strategies import engine_resources, graph_executions

SCHEMA = Path(__file__).parents[2] / "collector/schema/010_graph_executions.sql"


@settings(max_examples=50, deadline=None)
@given(graph_executions(), engine_resources())
def test_a_record_comes_back_from_its_span(execution: GraphExecution, resource: EngineResource) -> None:
    span = span_of(execution, resource)
    assert span_refusal(span) is None
    assert execution_of(span.name, span.start_ns, span.end_ns, span.attributes) == execution
    assert resource_of(span.resource) == resource


@settings(max_examples=50, deadline=None)
@given(graph_executions(), engine_resources())
def test_a_span_comes_back_from_its_record(execution: GraphExecution, resource: EngineResource) -> None:
    span = span_of(execution, resource)
    again = span_of(execution_of(span.name, span.start_ns, span.end_ns, span.attributes), resource_of(span.resource))
    assert again == span
    assert {name: type(value) for name, value in again.attributes.items()} == {
        name: type(value) for name, value in span.attributes.items()
    }


def test_every_attribute_survives() -> None:
    execution = execution_of("execute_graph P128", STARTED_AT, STARTED_AT + 5, GOOD_ATTRIBUTES)
    sent = {
        name: list(value) if isinstance(value, tuple) else value for name, value in span_attributes(execution).items()
    }
    assert sent == GOOD_ATTRIBUTES
    expected = GOOD_RESOURCE | {"gpu.ids": tuple(GOOD_RESOURCE["gpu.ids"])}
    assert resource_attributes(resource_of(GOOD_RESOURCE)) == expected


def test_what_is_not_recorded_is_not_sent() -> None:
    execution = GraphExecution("decode", GraphKind.PLAIN_DECODE, 0, 0, 0, STARTED_AT, 0)
    assert set(span_attributes(execution)) == {
        "graph.name",
        "graph.kind",
        "graph.purpose",
        "graph.sequence",
        "graph.gpu_time_ns",
        "graph.wall_time_ns",
    }
    assert resource_attributes(EngineResource("i")) == {"service.instance.id": "i"}


def test_an_engine_attribute_never_hides_one_of_the_contract() -> None:
    resource = EngineResource("i", engine_name="own", engine_attributes={"name": "other"})
    assert resource_attributes(resource)["engine.name"] == "own"


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("GET /", {}),
        ("execute_graph P128", {"graph.name": None}),
        ("execute_graph P128", {"graph.kind": "bogus"}),
        ("execute_graph P128", {"graph.sequence": "x"}),
        ("execute_graph P128", {"graph.sequence": float("inf")}),
        ("execute_graph P128", {"scheduler.candidate_estimates_ns": 1}),
    ],
)
def test_a_span_that_is_no_execution_is_a_clear_error(name: str, changed: dict[str, object]) -> None:
    with pytest.raises(ContractError, match=r"^[^\n]+$"):
        execution_of(name, STARTED_AT, STARTED_AT, GOOD_ATTRIBUTES | changed)


@given(st.text(), st.text())
def test_trace_ids_are_valid_and_stable(instance: str, cell: str) -> None:
    trace_id = trace_id_of(instance, cell)
    assert len(trace_id) == 16
    assert any(trace_id)
    assert trace_id == trace_id_of(instance, cell)


@given(st.text(), st.integers(0, 2**40 - 1))
def test_span_ids_are_valid_and_count_up(instance: str, sequence: int) -> None:
    span_id = span_id_of(instance, sequence)
    assert len(span_id) == 8
    assert any(span_id[:3])
    assert int.from_bytes(span_id[3:], "big") == sequence


def test_span_ids_tell_instances_apart_and_are_never_all_zero() -> None:
    assert len({span_id_of(f"engine-{number}", 7) for number in range(100)}) == 100
    # Of an instance whose hash is three zero bytes, found by trying.
    assert blake2b(b"engine-6000623", digest_size=3).digest() == bytes(3)
    assert span_id_of("engine-6000623", 0) == bytes((0, 0, 1, 0, 0, 0, 0, 0))


def test_one_trace_for_each_cell() -> None:
    execution = GraphExecution("decode", GraphKind.PLAIN_DECODE, 0, 0, 0, 30_000_000_000 * 7, 0)
    engine = EngineResource("i")

    def trace_id(started_at: int, cell_id: str = "", instance: EngineResource = engine) -> bytes:
        return span_of(execution._replace(started_at=started_at, cell_id=cell_id), instance).trace_id

    window = execution.started_at
    assert trace_id(window) == trace_id(window + 29_999_999_999) != trace_id(window + 30_000_000_000)
    assert trace_id(window, "c1") == trace_id(window + 60_000_000_000, "c1") != trace_id(window, "c2")
    assert trace_id(window) != trace_id(window, instance=EngineResource("j"))
    # A window is named by its start in Unix seconds.
    assert (trace_id(window + 1), trace_id(window, "c1")) == (trace_id_of("i", "210"), trace_id_of("i", "c1"))


def test_fields_are_the_table() -> None:
    assert set(GraphExecution._fields) - {"started_at", "duration_ns"} == _columns(SPAN_ATTRIBUTES)
    assert set(EngineResource._fields) - {"engine_attributes"} == _columns(RESOURCE_ATTRIBUTES)


def test_the_table_has_every_name() -> None:
    prefixes = ("GRAPH_", "BATCH_", "SCHEDULER_", "CELL_", "SERVICE_", "HOST_", "ENGINE_", "GPU_")
    constants = {value for key, value in vars(names).items() if key.startswith(prefixes) and isinstance(value, str)} - {
        names.ENGINE_PREFIX
    }
    assert {attribute.name for attribute in (*SPAN_ATTRIBUTES, *RESOURCE_ATTRIBUTES)} == constants


def test_columns_are_those_of_the_schema_in_order() -> None:
    columns = re.findall(r"^    ([a-z_]+) (?!String ALIAS)[A-Z]\w+", SCHEMA.read_text(), re.MULTILINE)
    shown = [column for column in columns if column != "received_at" and not column.startswith("stored_")]
    assert shown == list(EXECUTION_COLUMNS)


def _columns(attributes: tuple[Attribute, ...]) -> set[str]:
    return {attribute.column for attribute in attributes}
