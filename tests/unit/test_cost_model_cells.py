"""Recorded cells, replayed from their start, give every estimate that their scheduler stored."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue

from engine_hooks.contract.execution import GraphExecution
from engine_hooks.contract.span import execution_of
from engine_hooks.cost_model.registry import cost_model_named
from queries.replay.exact import believed_again
from tests.fixtures.otlp_files import requests_in

CELLS = Path(__file__).parents[3] / "shared" / "cases" / "cells"
TRUTH: list[dict[str, Any]] = json.loads((CELLS / "truth.json").read_text())["cells"] if CELLS.exists() else []
FROM_STARTUP = [cell for cell in TRUTH if cell["from_startup"]]


def executions_in(file: Path) -> Iterator[GraphExecution]:
    for content in requests_in(file):
        for resource_spans in ExportTraceServiceRequest.FromString(content).resource_spans:
            for scope_spans in resource_spans.scope_spans:
                for span in scope_spans.spans:
                    attributes = {attribute.key: value_of(attribute.value) for attribute in span.attributes}
                    yield execution_of(span.name, span.start_time_unix_nano, span.end_time_unix_nano, attributes)


def value_of(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    assert kind is not None
    return [value_of(item) for item in value.array_value.values] if kind == "array_value" else getattr(value, kind)


@pytest.mark.skipif(not FROM_STARTUP, reason=f"recorded cells are not at {CELLS}")
@pytest.mark.parametrize("cell", FROM_STARTUP, ids=lambda cell: cell["id"])
def test_every_stored_estimate_comes_out_again(cell: dict[str, Any]) -> None:
    first_lost = min(cell["sequence"]["lost"], default=cell["sequence"]["last"] + 1)
    compared = 0
    for execution, totals_ns in believed_again(
        executions_in(CELLS / cell["file"]), cost_model_named(cell["cost_model"])
    ):
        if execution.graph_sequence > first_lost:
            break  # what was lost was known to the scheduler, and is not to the replay
        assert totals_ns == execution.scheduler_candidate_estimates_ns, execution.graph_sequence
        compared += 1
    assert compared >= min(first_lost - cell["sequence"]["calibrations"], 500)
