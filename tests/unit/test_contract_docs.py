"""`docs/contract.md` says what the code does: its tables, its reasons, its example."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from engine_hooks.contract.attributes import RESOURCE_ATTRIBUTES, SPAN_ATTRIBUTES, Attribute, AttributeType
from engine_hooks.contract.execution import EngineResource, GraphExecution
from engine_hooks.contract.names import FeedbackReason, GpuTimeSource, GraphKind, Purpose
from engine_hooks.contract.reasons import REASONS
from engine_hooks.contract.span import GraphSpan, execution_of, resource_of
from engine_hooks.contract.validation import clock_trouble, span_refusal

PAGE = (Path(__file__).parents[2] / "docs/contract.md").read_text(encoding="utf-8")

TYPE_WORDS = {
    AttributeType.STRING: "string",
    AttributeType.INTEGER: "int",
    AttributeType.NUMBER: "double",
    AttributeType.BOOLEAN: "bool",
    AttributeType.STRINGS: "array of string",
    AttributeType.INTEGERS: "array of int",
    AttributeType.NUMBERS: "array of double",
}


def row(attribute: Attribute) -> str:
    values = ", ".join(f"`{value}`" for value in attribute.values)
    meaning = f"{attribute.meaning} One of {values}." if values else attribute.meaning
    cells = (
        f"`{attribute.name}`",
        "enum" if values else TYPE_WORDS[attribute.type],
        attribute.unit or "",
        "yes" if attribute.required else "",
        meaning,
    )
    return "| " + " | ".join(cells) + " |"


def test_the_tables_are_those_of_the_code() -> None:
    rows = [line for line in PAGE.splitlines() if re.match(r"\| `[a-z]+\.", line)]
    assert rows == [row(attribute) for attribute in (*SPAN_ATTRIBUTES, *RESOURCE_ATTRIBUTES)]


@pytest.mark.parametrize("reason", REASONS)
def test_every_reason_is_explained(reason: str) -> None:
    subject, _, trouble = reason.partition(" is ")
    named = subject in {attribute.name for attribute in (*SPAN_ATTRIBUTES, *RESOURCE_ATTRIBUTES)}
    section = PAGE.partition("## What is refused")[2].partition("\n## ")[0]
    if trouble in {f"not {kind}" for kind in AttributeType}:
        assert trouble.removeprefix("not ").partition(" of ")[0] in section
    else:
        assert (f"is {trouble}" if named else reason) in section


def example() -> dict[str, Any]:
    (block,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    body: dict[str, Any] = json.loads(block)
    return body


def test_the_example_keeps_the_contract() -> None:
    (resource_spans,) = example()["resourceSpans"]
    (scope_spans,) = resource_spans["scopeSpans"]
    (sent,) = scope_spans["spans"]
    span = GraphSpan(
        name=sent["name"],
        trace_id=bytes.fromhex(sent["traceId"]),
        span_id=bytes.fromhex(sent["spanId"]),
        start_ns=int(sent["startTimeUnixNano"]),
        end_ns=int(sent["endTimeUnixNano"]),
        attributes=_attributes(sent["attributes"]),
        resource=_attributes(resource_spans["resource"]["attributes"]),
    )
    assert sent["kind"] == 1
    assert span_refusal(span) is None
    assert set(span.attributes) == {attribute.name for attribute in SPAN_ATTRIBUTES}
    execution = execution_of(span.name, span.start_ns, span.end_ns, span.attributes)
    assert execution == EXAMPLE
    assert not clock_trouble(execution)
    assert resource_of(span.resource) == EXAMPLE_ENGINE


EXAMPLE = GraphExecution(
    graph_name="P128",
    graph_kind=GraphKind.SPECULATIVE,
    graph_sequence=41,
    graph_gpu_time_ns=28_500_000,
    graph_wall_time_ns=29_000_000,
    started_at=1_764_000_000_000_000_000,
    duration_ns=31_000_000,
    graph_purpose=Purpose.ORDINARY,
    graph_gpu_start_offset_ns=1_200_000,
    graph_gpu_time_source=GpuTimeSource.CUDA_EVENT,
    graph_queue_depth=0,
    graph_after_idle=False,
    graph_completion_feedback=True,
    graph_completion_feedback_reason=FeedbackReason.GRAMMAR,
    batch_lanes=16,
    batch_tokens_drafted=112,
    batch_tokens_accepted=70,
    batch_tokens_emitted=86,
    batch_verification_budget=128,
    scheduler_cost_model="drained_share",
    scheduler_estimate_ns=29_100_000,
    scheduler_estimate_gpu_ns=28_600_000,
    scheduler_estimate_handoff_ns=500_000,
    scheduler_expected_tokens=85.5,
    scheduler_candidate_graphs=("P128", "decode"),
    scheduler_candidate_estimates_ns=(29_100_000, 7_200_000),
    scheduler_candidate_expected_tokens=(85.5, 16.0),
    cell_id="bench-7",
    cell_arm="corrected",
    cell_position=3,
    cell_concurrency=16,
)

EXAMPLE_ENGINE = EngineResource(
    service_instance_id="host1:4711",
    service_name="chat",
    host_name="host1",
    engine_name="own",
    engine_version="1.2",
    engine_package="llama-70b",
    engine_recipe="latency",
    engine_tensor_parallel=4,
    gpu_ids=("0", "1", "2", "3"),
    engine_attributes={"all_reduce": "nccl"},
)


def _attributes(sent: list[dict[str, Any]]) -> dict[str, Any]:
    return {attribute["key"]: _value(attribute["value"]) for attribute in sent}


def _value(value: dict[str, Any]) -> Any:
    ((kind, content),) = value.items()
    if kind == "arrayValue":
        return [_value(item) for item in content["values"]]
    return int(content) if kind == "intValue" else content
