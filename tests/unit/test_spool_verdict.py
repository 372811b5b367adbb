"""A verdict in Python is ClickHouse's: by the contract's own table of cases, which ClickHouse is held to as well."""

import pytest

from collector.acceptance import Outcome
from collector.decoding.wire import request_class
from collector.spool.glance import SpanGlance, glance
from collector.spool.verdict import verdict_of
from tests.fixtures.contract_cases import CASES, GOOD_ATTRIBUTES, OTHER_SPAN_NAMES, SpanCase, request_of


def expected(case: SpanCase) -> Outcome:
    return Outcome(refused={case.reason: 1}) if case.reason else Outcome(1, clock_trouble=int(case.clock_trouble))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_case_of_the_contract(case: SpanCase) -> None:
    assert verdict_of(request_of([case])) == expected(case)


def test_a_request_of_all_cases_and_of_other_spans() -> None:
    others = [SpanCase(name, span={"name": name}) for name in OTHER_SPAN_NAMES]
    outcome = verdict_of(request_of([*CASES, *others]))
    assert outcome.other_spans == len(others)
    assert outcome.stored == sum(case.reason is None for case in CASES)
    assert sum(outcome.refused.values()) == sum(case.reason is not None for case in CASES)
    assert outcome.clock_trouble == sum(case.clock_trouble and case.reason is None for case in CASES)


def glances(case: SpanCase) -> list[SpanGlance]:
    message = request_class().FromString(request_of([case]))
    return [glance(span) for resource in message.resource_spans for scope in resource.scope_spans for span in scope.spans]  # type: ignore[attr-defined]  # fmt: skip


def test_a_plain_span_is_clear_at_a_glance() -> None:
    assert glances(SpanCase("good")) == [SpanGlance.FINE]
    longer = {"graph.gpu_time_ns": GOOD_ATTRIBUTES["graph.wall_time_ns"] + 1}
    assert glances(SpanCase("odd", attributes=longer)) == [SpanGlance.CLOCK_TROUBLE]


@pytest.mark.parametrize(
    "attributes",
    [{"graph.name": ""}, {"graph.kind": "bogus"}, {"graph.sequence": 1.0}, {"batch.lanes": -1}, {"cell.id": "ü"}],
    ids=str,
)
def test_what_is_not_plain_is_looked_into(attributes: dict[str, object]) -> None:
    assert glances(SpanCase("unclear", attributes=attributes)) == [SpanGlance.UNCLEAR]
