"""The contract's rules, case by case, and each reason listed once."""

from typing import Any

import pytest

from engine_hooks.contract import span as mapping
from engine_hooks.contract.attributes import RESOURCE_ATTRIBUTES
from engine_hooks.contract.execution import EngineResource, GraphExecution
from engine_hooks.contract.names import GraphKind
from engine_hooks.contract.reasons import REASONS
from engine_hooks.contract.span import GraphSpan
from engine_hooks.contract.validation import clock_trouble, refusal, span_refusal
from tests.fixtures.contract_cases import (
    CASES,
    OTHER_SPAN_NAMES,
    REFUSED,
    STORED,
    SpanCase,
    attributes_of,
    resource_of_case,
    span_of,
)

GOOD = GraphExecution("decode", GraphKind.PLAIN_DECODE, 1, 7_000_000, 7_100_000, 1_764_000_000_000_000_000, 9_000_000)
ENGINE = EngineResource("host1:1")


def graph_span(case: SpanCase) -> GraphSpan:
    fields = span_of(case)
    return GraphSpan(
        name=fields["name"],
        trace_id=fields["trace_id"],
        span_id=fields["span_id"],
        start_ns=fields["start_time_unix_nano"],
        end_ns=fields["end_time_unix_nano"],
        attributes=attributes_of(case),
        resource=resource_of_case(case),
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(case: SpanCase) -> None:
    assert span_refusal(graph_span(case)) == case.reason


@pytest.mark.parametrize("case", STORED, ids=lambda case: case.name)
def test_stored_case_becomes_its_row(case: SpanCase) -> None:
    span = graph_span(case)
    execution = mapping.execution_of(span.name, span.start_ns, span.end_ns, span.attributes)
    row = execution._asdict() | mapping.resource_of(span.resource)._asdict()
    row["graph_gpu_time_source"] = execution.graph_gpu_time_source or ""  # its column is text
    assert clock_trouble(execution) is case.clock_trouble
    assert {column: row[column] for column in case.stored} == dict(case.stored)


def test_reasons_are_listed_once() -> None:
    assert len(set(REASONS)) == len(REASONS)
    tried = {case.reason for case in REFUSED}
    assert tried <= set(REASONS)
    assert set(REASONS) - tried <= {f"{attribute.name} is not a string" for attribute in RESOURCE_ATTRIBUTES}


def test_case_names_are_unique() -> None:
    assert len({case.name for case in CASES}) == len(CASES)


@pytest.mark.parametrize("name", OTHER_SPAN_NAMES)
def test_other_spans_are_no_graph_executions(name: str) -> None:
    assert not mapping.is_graph_execution(name)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({}, None),
        ({"graph_name": ""}, "graph.name is missing"),
        ({"graph_kind": "bogus"}, "graph.kind is unknown"),
        ({"graph_gpu_time_ns": None}, "graph.gpu_time_ns is missing"),
        ({"graph_gpu_time_ns": "7"}, "graph.gpu_time_ns is not an integer"),
        ({"duration_ns": -1}, "span end is before span start"),
        ({"started_at": -5}, "span start is zero"),
        ({"scheduler_candidate_graphs": ("decode",)}, "candidate arrays differ in length"),
    ],
)
def test_refusal_of_a_record(changed: dict[str, Any], reason: str | None) -> None:
    assert refusal(GOOD._replace(**changed), ENGINE) == reason


def test_refusal_of_a_record_without_instance() -> None:
    assert refusal(GOOD, EngineResource("")) == "service.instance.id is missing"
