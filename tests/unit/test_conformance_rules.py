"""Every rule of conformance: a run that keeps it, and one that breaks it."""

import re
from collections.abc import Iterable

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collector.conformance import rules
from collector.conformance.findings import OTHERS, SUBJECTS_MAX
from collector.conformance.in_order import InOrder
from collector.conformance.instances import Instances
from collector.conformance.rules import RULES, Rule
from engine_hooks.contract.reasons import REASONS
from tests.fixtures.conformance_runs import (
    ROUND_NS,
    Breaking,
    Run,
    broken_rules,
    changed,
    every,
    good_run,
    one,
    report_of,
    scaled,
    shifted,
)
from tests.fixtures.contract_cases import NOT_UTF8, REFUSED, STARTED_AT, SpanCase, request_of
from tests.fixtures.running import ROOT

_CANDIDATES = "scheduler.candidate_graphs"


def _without(sequence: int) -> Breaking:
    return lambda run: [case for at, case in enumerate(run) if at != sequence]


def _reversed(run: Run) -> Iterable[SpanCase]:
    return run[::-1]


def _again(**changes: object) -> Breaking:
    return lambda run: [*run, changed(run[3], **changes)]  # type: ignore[arg-type]


def _in_flight(run: Run) -> Iterable[SpanCase]:
    """A second submission while the first is in flight, device work one after the other."""
    second = changed(
        run[1],
        {"graph.gpu_start_offset_ns": 9_700_000, "graph.wall_time_ns": 28_500_000},
        span={"start_time_unix_nano": STARTED_AT + 20_000_000, "end_time_unix_nano": STARTED_AT + 59_000_000},
    )
    return [run[0], second]


def _in_flight_counted(run: Run) -> Iterable[SpanCase]:
    return [changed(case, {"graph.queue_depth": at}) for at, case in enumerate(_in_flight(run))]


def _long(depth: int) -> Breaking:
    def made(_: Run) -> Iterable[SpanCase]:
        return [changed(case, {"graph.queue_depth": depth, "graph.after_idle": False}) for case in good_run(1000)]

    return made


def _cell(at: int, cell: str) -> Breaking:
    return lambda run: [
        changed(case, {"cell.id": cell, "cell.arm": "b"}) if i >= at else case for i, case in enumerate(run)
    ]


_TOO_LATE = {
    "start_time_unix_nano": STARTED_AT + 3 * 3600 * 10**9,
    "end_time_unix_nano": STARTED_AT + 3 * 3600 * 10**9 + 1,
}

TABLE: tuple[tuple[Rule, Breaking, Breaking], ...] = (
    # the rule, what keeps it, what breaks it
    (rules.SPAN_NAME, one(), one(span={"name": "P128"})),
    (rules.SPAN_NAME, one({"graph.name": "decode"}, span={"name": "execute_graph decode"}), one({"graph.name": "decode"})),
    (rules.SPAN_ID, one(span={"span_id": b"\1" * 8}), one(span={"span_id": b"\1" * 7})),
    (rules.SPAN_TIMES, one(), one(span={"end_time_unix_nano": 0})),
    (rules.ATTRIBUTE_MISSING, one({"graph.purpose": None}), one({"graph.kind": None})),
    (rules.ATTRIBUTE_TYPE, one({"graph.gpu_time_ns": 28_500_000.0}), one({"graph.gpu_time_ns": "28500000"})),
    (rules.ATTRIBUTE_NOT_UTF8, one({"cell.arm": None}), one({"scheduler.cost_model": NOT_UTF8})),
    (rules.ENUM_UNKNOWN, one({"graph.kind": "mixed"}), one({"graph.kind": "Speculative"})),
    (rules.OUT_OF_RANGE, one({"batch.lanes": 0}), one({"batch.lanes": -1})),
    (rules.CANDIDATES_LENGTH, one(), one({_CANDIDATES: ["P128"]})),
    (rules.ATTRIBUTE_UNKNOWN, one({"own.colour": "red"}), one({"graph.gpu_time_ms": 28})),
    (rules.ATTRIBUTE_UNKNOWN, one({"gpu.ids_seen": 1}), one({"graphPurpose": "x", "graph.purpose": None})),
    (rules.ATTRIBUTE_UNKNOWN, every(resource={"service.version": "3", "engine.recipes": "a"}), every(resource={"gpu_ids": "7", "gpu.ids": None})),
    (rules.ATTRIBUTE_MISPLACED, one(), one({"service.instance.id": "host1:4711"})),
    (rules.ATTRIBUTE_MISPLACED, every(resource={"engine.own": "x"}), every(resource={"cell.id": "x"})),
    (rules.RESOURCE_INCOMPLETE, every(resource={"engine.version": None}), every(resource={"host.name": None})),
    (rules.GPU_ABOVE_WALL, one({"graph.wall_time_ns": 28_500_000}), one({"graph.wall_time_ns": 20_000_000})),
    (rules.GPU_ABOVE_SPAN, one(), one(span={"end_time_unix_nano": STARTED_AT + 3 * ROUND_NS + 10_000_000})),
    (rules.CLOCK_ROUNDING, one({"graph.wall_time_ns": 28_500_000}), one({"graph.wall_time_ns": 28_499_900})),
    (rules.CLOCK_FUTURE, shifted(0, 60_000_000_000), one(span=_TOO_LATE)),
    (rules.CLOCK_PAST, shifted(0, -60_000_000_000), shifted(0, STARTED_AT // 1000 - STARTED_AT)),
    (rules.CLOCK_LATE, shifted(0, -3000 * 10**9), shifted(0, -4000 * 10**9)),
    (rules.TOKENS_ACCEPTED, one({"batch.tokens_accepted": 112}), one({"batch.tokens_accepted": 113})),
    (rules.KIND_DRAFTED, one({"graph.kind": "plain_decode", "batch.tokens_drafted": 0}), one({"graph.kind": "plain_decode"})),
    (rules.BUDGET_EXCEEDED, one({"batch.verification_budget": 128}), one({"batch.verification_budget": 127})),
    (rules.BUDGET_EXCEEDED, one({"batch.verification_budget": 112, "batch.lanes": None}), one({"batch.verification_budget": 8, "batch.lanes": None})),
    (rules.BUDGET_EXCEEDED, one({"batch.verification_budget": 112, "graph.kind": "mixed"}), one({"batch.verification_budget": 111, "graph.kind": "mixed"})),
    (rules.TOKENS_EMITTED, one({"batch.tokens_emitted": 0}), every({"batch.tokens_emitted": 0})),
    (rules.TOKENS_EMITTED, every({"batch.tokens_emitted": 70}), every({"batch.tokens_emitted": 16})),
    (rules.UNIT, every({"graph.gpu_start_offset_ns": 5_000}), scaled("graph.gpu_start_offset_ns", 1000)),
    (rules.UNIT, every({"graph.gpu_start_offset_ns": -1_200}), every({"graph.gpu_start_offset_ns": 2})),
    (rules.ESTIMATE_MISSING, one({"graph.kind": "prefill", "scheduler.estimate_ns": None}), one({"scheduler.estimate_ns": None})),
    (rules.ESTIMATE_MISSING, one(), one({"scheduler.cost_model": None})),
    (rules.ESTIMATE_PARTS, one({"scheduler.estimate_handoff_ns": None}), one({"scheduler.estimate_handoff_ns": 0})),
    (
        rules.CANDIDATES_MISSING,
        one({"scheduler.estimate_ns": None, **dict.fromkeys((_CANDIDATES, "scheduler.candidate_estimates_ns", "scheduler.candidate_expected_tokens"))}),
        one(dict.fromkeys((_CANDIDATES, "scheduler.candidate_estimates_ns", "scheduler.candidate_expected_tokens"))),
    ),
    (rules.CANDIDATES_WITHOUT_CHOSEN, one(), one({_CANDIDATES: ["p128", "decode"]})),
    (rules.CANDIDATE_ESTIMATE, one(), one({"scheduler.candidate_estimates_ns": [29_100_001, 7_200_000]})),
    (rules.FEEDBACK_REASON, one({"graph.completion_feedback_reason": None}), one({"graph.completion_feedback": None})),
    (rules.AFTER_IDLE_IN_FLIGHT, one({"graph.after_idle": True}), one({"graph.after_idle": True, "graph.queue_depth": 1})),
    (rules.CELL_WITHOUT_ID, one({"cell.id": None, "cell.arm": None, "cell.position": None, "cell.concurrency": None}), one({"cell.id": None})),
    (rules.CELL_INCONSISTENT, _cell(6, "bench-8"), _cell(6, "bench-7")),
    (rules.UNIT, scaled("graph.gpu_time_ns", 10), scaled("graph.gpu_time_ns", 1000)),
    (rules.UNIT, every({"graph.wall_time_ns": 28_500_000}), scaled("graph.wall_time_ns", 1_000_000)),
    (rules.UNIT, scaled("scheduler.estimate_ns", 5), scaled("scheduler.estimate_ns", 1000)),
    (rules.SPAN_ID_REPEATED, one(), one(span={"span_id": (1).to_bytes(8, "big")})),
    (rules.SENT_TWICE, one(), _again()),
    (rules.SEQUENCE_REPEATED, _reversed, _again(span={"span_id": b"\7" * 8})),
    (rules.SEQUENCE_GAP, _without(0), _without(5)),
    (rules.DEPTH_NOT_RETURNING, _in_flight_counted, lambda run: every({"graph.queue_depth": 1})(_apart(run))),
    (rules.DEPTH_NOT_RETURNING, one({"graph.queue_depth": 1}), every({"graph.queue_depth": 1})),
    (rules.DEPTH_NEVER_ZERO, _long(0), _long(1)),
    (rules.DEPTH_TOO_LOW, _in_flight_counted, _in_flight),
    (rules.WALL_TIME, one({"graph.wall_time_ns": 60_000_000}), every({"graph.wall_time_ns": 60_000_000})),
    (rules.IDLE_UNMARKED, lambda run: one({"graph.after_idle": True})(shifted(3, 2 * 10**9)(run)), shifted(3, 2 * 10**9)),
    (rules.CLOCK_BACKWARDS, shifted(3, -10), shifted(3, -2 * 10**9)),
)  # fmt: skip


def _apart(run: Run) -> Run:
    """Each completes well before the next is submitted."""
    return [
        changed(case, span={name: case.span[name] + at * 10_000_000 for name in ("start_time_unix_nano", "end_time_unix_nano")})
        for at, case in enumerate(run)
    ]  # fmt: skip


def _ids() -> list[str]:
    seen: dict[str, int] = {}
    for rule, _, _ in TABLE:
        seen[rule.id] = seen.get(rule.id, 0) + 1
    numbers = dict.fromkeys(seen, 0)
    made = []
    for rule, _, _ in TABLE:
        numbers[rule.id] += 1
        made.append(f"{rule.id} {numbers[rule.id]}")
    return made


def test_a_good_run_conforms() -> None:
    report = report_of(request_of(good_run()))
    assert report.findings == ()
    assert (report.executions, report.instances, report.refused) == (12, 1, 0)


@pytest.mark.parametrize(("rule", "keeping", "breaking"), TABLE, ids=_ids())
def test_rule(rule: Rule, keeping: Breaking, breaking: Breaking) -> None:
    assert rule.id not in broken_rules(keeping(good_run()))
    broken = broken_rules(breaking(good_run()))
    assert rule.id in broken
    assert broken[rule.id]


def test_every_rule_is_tested() -> None:
    elsewhere = {rules.SPAN_KIND.id, rules.ATTRIBUTE_REPEATED.id, rules.REQUEST_UNREADABLE.id}
    assert {rule.id for rule, _, _ in TABLE} | elsewhere == {rule.id for rule in RULES}
    assert len({rule.id for rule in RULES}) == len(RULES)


def test_kind_and_repeated_attributes() -> None:
    request = ExportTraceServiceRequest.FromString(request_of(good_run()))
    span = request.resource_spans[3].scope_spans[0].spans[0]
    span.kind = span.SPAN_KIND_CLIENT
    span.attributes.add(key="graph.name").value.string_value = "other"
    found = {finding.rule.id for finding in report_of(request.SerializeToString()).findings}
    assert found == {rules.SPAN_KIND.id, rules.ATTRIBUTE_REPEATED.id}


@pytest.mark.parametrize("case", REFUSED, ids=[f"{number}" for number in range(len(REFUSED))])
def test_what_the_contract_refuses_is_an_error(case: SpanCase) -> None:
    report = report_of(request_of([case]))
    assert report.refused == 1
    told = {
        f"{finding.subject} {finding.example.value}" for finding in report.findings if finding.rule.severity == "error"
    }
    assert case.reason in REASONS
    assert any(case.reason.rpartition(" is ")[2] in line for line in told if case.reason), told


def test_a_wrong_unit_names_the_unit() -> None:
    assert "looks like µs" in broken_rules(scaled("graph.gpu_time_ns", 1000)(good_run()))["unit"]
    assert "looks like ms" in broken_rules(scaled("graph.gpu_time_ns", 1_000_000)(good_run()))["unit"]
    assert "would be µs" in broken_rules(shifted(0, STARTED_AT // 1000 - STARTED_AT)(good_run()))["clock-past"]


def test_unknown_attributes_say_what_was_meant() -> None:
    assert (
        broken_rules(one({"graph.gpu_time": 28})(good_run()))["attribute-unknown"] == "did you mean graph.gpu_time_ns?"
    )
    assert "no such" in broken_rules(one({"batch.colour": 28})(good_run()))["attribute-unknown"]


def test_order_of_arrival_does_not_matter() -> None:
    assert report_of(*(request_of([case]) for case in good_run(200)[::-1])).findings == ()


def test_memory_is_bounded() -> None:
    """More unknown names, instances and waiting executions than are kept: counted, and still told."""
    names = {f"graph.own_{number}": 1 for number in range(3 * SUBJECTS_MAX)}
    report = report_of(request_of(one(names)(good_run())))
    assert len(report.findings) == SUBJECTS_MAX + 1
    assert next(f.times for f in report.findings if f.subject == OTHERS) == 2 * SUBJECTS_MAX
    many = Instances.INSTANCES_MAX + 5
    run = [
        changed(good_run(1)[0], resource={"service.instance.id": f"i{i}"}, span={"span_id": (i + 1).to_bytes(8, "big")})
        for i in range(many)
    ]
    assert report_of(request_of(run)).instances == many
    gap = good_run(InOrder.WINDOW + 3)
    assert "sequence-gap" in broken_rules([gap[0], *gap[2:]])


def test_a_refused_execution_is_no_gap() -> None:
    assert set(broken_rules(one({"graph.kind": "bogus"})(good_run()))) == {"enum-unknown"}


def test_the_docs_list_every_rule_as_it_is() -> None:
    page = (ROOT / "docs" / "conformance.md").read_text()
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    anchors = [rule.section.removeprefix("docs/") for rule in RULES]
    assert rows == [
        f"| `{rule.id}` | {rule.severity} | {rule.sentence} | {rule.mend} ([contract]({anchor})) |"
        for rule, anchor in zip(RULES, anchors, strict=True)
    ]


def test_sections_of_the_contract_are_there() -> None:
    headings = re.findall(r"^#+ (.+)$", (ROOT / "docs" / "contract.md").read_text(), re.MULTILINE)
    anchors = {re.sub(r"[^a-z0-9 -]", "", heading.lower()).replace(" ", "-") for heading in headings}
    assert {rule.section.partition("#")[2] for rule in RULES} <= anchors


def test_a_device_that_stands_still_within_executions_has_right_wall_times() -> None:
    """Its GPU time ends before it does: what is missing of one wall time comes with the next."""
    stalls_ns = (0, 8_000_000, 0, 9_000_000, 7_000_000, 0)
    run = [
        changed(case, {"graph.wall_time_ns": ROUND_NS + stalls_ns[at % 6] - stalls_ns[(at - 1) % 6]})
        for at, case in enumerate(good_run(48))
    ]
    assert "wall-time" not in broken_rules(run)
