"""Public reports turned into data: what other tools got wrong must not be found here."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from engine_hooks.contract.execution import GraphExecution
from engine_hooks.contract.names import Purpose
from queries.findings.acceptance import stretches_of
from queries.findings.costs import costs_of
from queries.findings.diagnosis import diagnose
from queries.findings.findings import EstimateInflation, Finding, Kind, Verdict
from queries.findings.record import CellRecord, record_of
from queries.findings.timeline import timeline_of
from tests.fixtures.labelled_records import labelled_record
from tests.fixtures.query_rows import MS, START_NS, believing, round_of

IDLE_MS = 1456.7
AFTER_IDLE = 573


def found(record: CellRecord) -> dict[Kind, Finding]:
    return {finding.kind: finding for finding in diagnose(record).findings}


@pytest.fixture(scope="module")
def idle_cell(cases: Path) -> CellRecord:
    """An engine without work for 1,456.7 ms between two requests, as its sender marked it."""
    return labelled_record(cases / "cells", "r045")


@pytest.fixture(scope="module")
def unmarked(idle_cell: CellRecord) -> CellRecord:
    """The same from a sender that knows nothing of idleness: the idle time is in the wall time."""
    return replace(idle_cell, executions=tuple(as_a_long_step(idle_cell.executions)))


def as_a_long_step(executions: Iterable[GraphExecution]) -> Iterator[GraphExecution]:
    for e in executions:
        wall = e.graph_wall_time_ns + int(IDLE_MS * MS)
        yield e._replace(graph_after_idle=False, graph_wall_time_ns=wall) if e.graph_sequence == AFTER_IDLE else e


@pytest.mark.parametrize("marked", [True, False])
def test_no_work_is_neither_a_step_nor_a_regression(
    idle_cell: CellRecord, unmarked: CellRecord, *, marked: bool
) -> None:
    record = idle_cell if marked else unmarked
    findings = found(record)
    assert set(findings) == {Kind.IDLE}
    (evidence,) = findings[Kind.IDLE].evidence
    assert evidence.sequences == (AFTER_IDLE,)
    idle_ms = evidence.quantities[0].value / MS
    assert idle_ms == pytest.approx(IDLE_MS, abs=1)
    assert evidence.says.startswith(f"The engine had no work for {idle_ms:.1f} ms before 1 of its executions.")
    first, last = record.executions[0], record.executions[-1]
    whole_ms = (last.started_at + last.duration_ns - first.started_at) / MS
    assert findings[Kind.IDLE].fraction == pytest.approx(IDLE_MS / whole_ms, rel=0.002)
    timeline = timeline_of(record)
    assert timeline.gap.max() < 2 * MS
    assert costs_of(timeline).total[:, timeline.graph_numbered("P128")].max() < 30 * MS


def test_a_stumble_is_no_idleness(cases: Path) -> None:
    """The host that stumbles sees the round before end only after it has submitted: it was not free."""
    findings = found(labelled_record(cases / "cells", "r014"))
    assert Kind.IDLE not in findings


def two_streams() -> Iterator[GraphExecution]:
    """Verification on one stream, drafting on another, the device never idle; each gap as its own stream shows it."""
    at_ms = 0.0
    for n in range(400):
        verify = n % 2 == 0
        gpu_ms = 30.0 if verify else 49.0
        yield round_of(
            n,
            at_ms,
            "P128" if verify else "P64",
            gpu_ms,
            wall_ms=79.0,
            graph_queue_depth=1,
            graph_gpu_start_offset_ns=0,
        )
        at_ms += gpu_ms


def test_idleness_of_a_stream_is_none_of_the_device() -> None:
    record = record_of(two_streams())
    assert timeline_of(record).gap[1:].max() == 0
    assert set(found(record)) <= {Kind.NO_SPECULATION}
    alone = [e._replace(graph_gpu_start_offset_ns=None) for e in two_streams()]
    assert timeline_of(record_of(alone)).gap[1:].min() >= 30 * MS


LANES = 32
BELIEVED = believing({"decode": (13.5, 32.0), "P128": (28.5, 73.0)})


def rounds(rejected_every: int) -> Iterator[GraphExecution]:
    """Two seconds of speculation of which some rounds are rejected in full, then plain decode."""
    at_ms = 0.0
    for n in range(1200):
        speculates = n < 70
        accepted = 0 if rejected_every and n % rejected_every == 0 else 41
        fields = {"batch_tokens_drafted": 96, "batch_tokens_accepted": accepted} if speculates else {}
        yield round_of(
            n,
            at_ms,
            "P128" if speculates else "decode",
            28.5 if speculates else 13.5,
            batch_lanes=LANES,
            batch_tokens_emitted=LANES + accepted if speculates else LANES,
            **fields,
            **BELIEVED,
        )
        at_ms += 28.5 if speculates else 13.5


def test_full_rejections_count() -> None:
    """Without the rejected rounds speculation would look better than plain decode; with them it is worse."""
    with_rejections, without = record_of(rounds(2)), record_of(rounds(0))
    (measured,) = stretches_of(timeline_of(with_rejections))
    (flattered,) = stretches_of(timeline_of(without))
    assert measured.rounds == flattered.rounds == 70
    assert measured.acceptance < flattered.acceptance - 0.15
    assert diagnose(with_rejections).being_in_plain.verdict == Verdict.RIGHT
    assert diagnose(without).being_in_plain.verdict == Verdict.WRONG
    emitted = sum(e.batch_tokens_emitted or 0 for e in with_rejections.executions)
    assert diagnose(with_rejections).tokens_emitted == emitted


def falling(count: int, falls_at: int) -> list[GraphExecution]:
    """Speculation of which 2 of 3 drafts are accepted, and from some round on 1 of 6."""
    return [
        round_of(
            n, 28.5 * n, "P128", 28.5, batch_lanes=LANES, batch_tokens_drafted=96,
            batch_tokens_accepted=16 if n >= falls_at else 64, batch_tokens_emitted=LANES + (16 if n >= falls_at else 64),
        )
        for n in range(count)
    ]  # fmt: skip


def test_acceptance_that_fell_before_the_cell_did_not_fall_in_it() -> None:
    executions = falling(400, falls_at=100)
    collapse = found(record_of(executions))[Kind.ACCEPTANCE_COLLAPSE]
    assert collapse.evidence[0].sequences == (100,)
    assert collapse.fraction == pytest.approx(300 / 400)
    assert Kind.ACCEPTANCE_COLLAPSE in found(record_of(executions[50:], executions[:50]))
    assert Kind.ACCEPTANCE_COLLAPSE not in found(record_of(executions[200:], executions[:200]))


def test_lost_executions_are_told_with_their_share() -> None:
    lost = found(record_of(e for e in falling(400, 400) if e.graph_sequence not in (100, 200, 201)))
    evidence = lost[Kind.EXECUTIONS_LOST].evidence[0]
    assert evidence.says == "Never recorded: 3 of 400 executions."
    assert evidence.sequences == (100, 200)
    assert lost[Kind.EXECUTIONS_LOST].fraction == pytest.approx(3 / 400)


def test_an_estimate_that_nobody_lifted_is_no_fault() -> None:
    """Wrongly in plain, but no delay is to blame: the verdict says so, and no fault is made up."""
    diagnosis = diagnose(record_of(rounds(0)))
    assert diagnosis.label == Kind.HEALTHY
    assert not diagnosis.stuck_by_fault


def poisoned_long_ago() -> Iterator[GraphExecution]:
    """P128 is charged its 28 ms, and 34.5 from a stumble of 33 ms on (100); a lesser one (112) lifts nothing."""
    at_ms = 0.0
    for n in range(1000):
        speculates = n <= 101 or n == 112
        gpu_ms = 28 if speculates else 13
        wall_ms = gpu_ms + {100: 33, 112: 8}.get(n, 0)
        fields = {"batch_tokens_drafted": 12, "batch_tokens_accepted": 6} if speculates else {}
        fields |= {"graph_purpose": Purpose.REFRESH} if n == 112 else {}
        charged_ms = 28 if n <= 101 else 34.5 if n <= 112 else 34.3
        graph, believed = "P128" if speculates else "decode", believing({"decode": (13, 4), "P128": (charged_ms, 10)})
        depth = int(wall_ms == gpu_ms)
        yield round_of(n, at_ms, graph, gpu_ms, wall_ms=wall_ms, graph_queue_depth=depth, **fields, **believed)
        at_ms += wall_ms


def test_what_did_not_lift_an_estimate_before_the_cell_did_not_poison_it() -> None:
    executions = list(poisoned_long_ago())
    inflation = found(record_of(executions[400:], executions[:400]))[Kind.ESTIMATE_INFLATION]
    assert isinstance(inflation, EstimateInflation)
    assert inflation.poisoned_before
    (poison,) = inflation.poisons
    assert (poison.sequence, poison.estimate_before_ns, poison.lift_ns) == (100, 28 * MS, int(6.5 * MS))


def test_one_execution_is_enough_for_an_answer() -> None:
    diagnosis = diagnose(record_of([round_of(0, 0.0, "P128", 28.5)]))
    assert diagnosis.label == Kind.HEALTHY
    assert diagnosis.being_in_plain.verdict == Verdict.NONE
    assert diagnosis.seconds == pytest.approx(0.0285)
    assert timeline_of(record_of([round_of(0, 0.0, "P128", 28.5)])).since_ns == START_NS
