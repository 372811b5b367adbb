"""A draft model's own graph is charged to the speculative rounds that verify its drafts, in findings and post-mortems."""

from functools import cache

import pytest

from engine_hooks.contract.drafting import drafts_by_round
from engine_hooks.contract.execution import GraphExecution
from engine_hooks.contract.names import GraphKind
from engine_hooks.cost_model.registry import cost_model_named
from engine_hooks.scheduler.scheduler import Scheduler
from queries.findings.diagnosis import diagnose
from queries.findings.findings import Diagnosis, Kind, Verdict
from queries.findings.record import record_of
from queries.postmortem.markdown import markdown_of
from queries.postmortem.story import Story, story_of
from tests.fixtures.drafting_engine import DECODE, MS, P64, Charging, DraftingEngine
from tests.fixtures.query_rows import round_of
from tests.fixtures.replayed_cells import cell_of

DRAFT = {"graph_kind": GraphKind.DRAFT}


def mixed(now_ns: int) -> float:
    """0.9, and 0.5 from 20 s on."""
    return 0.9 if now_ns < 20e9 else 0.5


@cache
def rightly_plain() -> tuple[GraphExecution, ...]:
    """P64 is charged what it costs with its drafts. Acceptance falls, which the scheduler sees a second later."""
    own = Charging((int(20.1 * MS), int(43.1 * MS)), lambda now_ns: mixed(now_ns - int(1e9)))
    return DraftingEngine(own, mixed).run(60)


@cache
def wrongly_speculating() -> tuple[GraphExecution, ...]:
    """The embedded scheduler, never told of the drafts: to it P64 gives half as much again, and it gives 28 % less."""
    scheduler = Scheduler((DECODE, P64), cost_model_named("drained_share"))
    return DraftingEngine(scheduler, lambda _: 0.36, passes_drafts_on=False).run(30)


def diagnosis_of(executions: tuple[GraphExecution, ...]) -> Diagnosis:
    return diagnose(record_of(executions, service_instance_id="engine-1"))


def story(executions: tuple[GraphExecution, ...]) -> Story:
    return story_of(cell_of(executions), diagnosis_of(executions))


def test_drafts_belong_to_the_speculative_round_after_them() -> None:
    rounds = [
        round_of(0, 0, "drafter", 7, **DRAFT),
        round_of(1, 7, "drafter", 7, **DRAFT),
        round_of(2, 14, "prefill", 9, graph_kind=GraphKind.PREFILL),
        round_of(3, 23, "P64", 29),
        round_of(4, 52, "P64", 29),
        round_of(5, 81, "drafter", 7, **DRAFT),
        round_of(6, 88, "decode", 20),
        round_of(7, 108, "P64", 29),
        round_of(8, 137, "drafter", 7, **DRAFT),
    ]
    assert drafts_by_round(rounds) == {3: (0, 1)}


def test_plain_decode_was_right_where_drafts_make_speculation_dearer() -> None:
    """From the fall on plain decode gives 16 / 20 tokens a ms, P64 30 / 43."""
    diagnosis = diagnosis_of(rightly_plain())
    plain = diagnosis.being_in_plain
    assert plain.verdict is Verdict.RIGHT
    (span,) = plain.spans
    assert span.true_margin_percent == pytest.approx(100 * (16 / 20 / (30 / 43) - 1), abs=2)
    assert diagnosis.expected_loss_percent == pytest.approx(0, abs=0.5)
    assert (diagnosis.overcharge, diagnosis.undercharge) == (None, None)
    assert {finding.kind for finding in diagnosis.findings} == {Kind.ACCEPTANCE_COLLAPSE, Kind.PLAIN_RIGHT}


def test_rounds_charged_without_their_drafts_are_told() -> None:
    executions = wrongly_speculating()
    told = story(executions)
    assert not told.diagnosis.is_well
    # 16 / 20 tokens a ms against 16 x (1 + 0.36 + 0.36² + 0.36³) / 43.
    emitted_ms = 16 * (1 + 0.36 + 0.36**2 + 0.36**3) / 43
    assert told.diagnosis.expected_loss_percent == pytest.approx(100 * (1 - emitted_ms / (16 / 20)), abs=2)
    under = told.diagnosis.undercharge
    assert under is not None
    assert (under.graph, under.better, under.drafts_ns) == ("P64", "decode", 14 * MS)
    assert under.cost_ns == pytest.approx(43 * MS, rel=0.01)
    assert under.charged_ns == pytest.approx(29 * MS, rel=0.02)
    assert told.headline.startswith("P64 is charged 29.")
    assert " ms without its draft executions, and costs 43." in told.headline
    assert "would have been the best" in markdown_of(told)


def test_a_host_that_is_slow_with_drafting_rounds_is_seen_before_the_drafts() -> None:
    """It takes 55 ms for the 43 ms of a round: that is no contention, and a round costs 55 ms."""
    own = Charging((int(20.1 * MS), int(55 * MS)), lambda _: 0.9)
    diagnosis = diagnosis_of(DraftingEngine(own, lambda _: 0.9, planning_ns=55 * MS).run(30))
    assert diagnosis.label is Kind.HOST_BOUND
    (finding,) = diagnosis.findings
    assert "1.28 times the GPU time for rounds of P64" in finding.evidence[0].says


def test_without_draft_executions_nothing_is_charged_for_any() -> None:
    executions = tuple(one for one in wrongly_speculating() if one.graph_kind is not GraphKind.DRAFT)
    assert drafts_by_round(executions) == {}
    assert diagnosis_of(executions).undercharge is None
