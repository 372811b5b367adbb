"""The seventeen labelled cells: every label, poison, verdict and loss as it was."""

import functools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from engine_hooks.contract.execution import GraphExecution
from engine_hooks.contract.span import span_id_of
from queries.findings.diagnosis import diagnose, findings_of, label_of
from queries.findings.findings import Diagnosis, EndedBy, EstimateInflation, Kind, Verdict
from queries.findings.record import CellRecord, record_of
from queries.postmortem.story import poisons_of
from queries.runner import asked
from tests.fixtures.labelled_records import LABELLED, labelled_record, truth

INFLATED = ("r014", "r016", "r020", "r023", "r049")
SHIFT_NS = 86_400_000_000_000 + 12_345_678


@pytest.fixture(scope="module")
def cells(cases: Path) -> Path:
    return cases / "cells"


@functools.lru_cache(maxsize=len(LABELLED))
def diagnosed(cells: Path, name: str) -> Diagnosis:
    return diagnose(labelled_record(cells, name))


def inflation(diagnosis: Diagnosis) -> EstimateInflation:
    return next(finding for finding in diagnosis.findings if isinstance(finding, EstimateInflation))


@pytest.mark.parametrize("name", LABELLED)
def test_label_verdict_and_loss(cells: Path, name: str) -> None:
    right, diagnosis = truth(cells)[name], diagnosed(cells, name)
    assert (diagnosis.label, set(diagnosis.also)) == (right["label"], set(right["also"]))
    assert diagnosis.being_in_plain.verdict == right["being_in_plain"]["verdict"]
    assert diagnosis.being_in_plain.stuck == right["stuck"]
    assert diagnosis.being_in_plain.plain_fraction == pytest.approx(right["plain_fraction"]["by_time_recorded"])
    assert diagnosis.stuck_by_fault == right["stuck_by_fault"]
    assert diagnosis.expected_loss_percent == pytest.approx(right["expected_loss_of_choices_percent"], abs=0.5)
    assert (Kind.ESTIMATE_INFLATION in {finding.kind for finding in diagnosis.findings}) == bool(right["fault"])


@pytest.mark.parametrize("name", LABELLED)
def test_plain_spans_poisons_and_endings(cells: Path, name: str) -> None:
    right, diagnosis = truth(cells)[name], diagnosed(cells, name)
    spans = diagnosis.being_in_plain.spans
    assert len(spans) == len(right["plain_spans"])
    for span, true in zip(spans, right["plain_spans"], strict=True):
        assert span.from_sequence == true["from_sequence"]
        assert span.right == true["right"]
        assert [poison.sequence for poison in span.poisoned_by] == true["poisoned_by_sequences"]
        assert span.poisoned_before == true["poisoned_before_this_cell"]
        assert span.believed_margin_percent == pytest.approx(true["believed_margin_percent"], abs=0.01)
        assert span.believed_best_other == true["believed_best_other"]
        assert span.true_margin_percent == pytest.approx(true["true_margin_percent"], abs=2)
        assert true["ended_by"].startswith(
            {EndedBy.REFRESH: "refresh of ", EndedBy.PLAIN_INFLATED: "estimate of "}.get(span.ended.by, span.ended.by)
        )
        if span.ended.sequence is not None:
            assert f"{span.ended.graph} " in true["ended_by"]
            assert true["ended_by"].endswith(f"sequence {span.ended.sequence}")


@pytest.mark.parametrize("name", INFLATED)
def test_what_moved_the_estimates(cells: Path, name: str) -> None:
    right, found = truth(cells)[name], inflation(diagnosed(cells, name))
    moves = {move["sequence"]: move for move in right["estimate_moves"]}
    assert found.poisons
    for poison in found.poisons:
        assert poison.sequence is not None
        move = moves[poison.sequence]
        assert (poison.graph, poison.purpose, poison.queue_depth) == (move["graph"], move["purpose"], 0)
        assert (poison.gpu_time_ns, poison.wall_time_ns) == (move["gpu_time_ns"], move["wall_time_ns"])
        assert poison.at_ns == move["observed_unix_ns"]
        assert poison.estimate_before_ns == pytest.approx(move["estimate_before_ns"], abs=60_000)
        assert poison.estimate_after_ns == pytest.approx(move["estimate_after_ns"], abs=60_000)
        instance = right["resource"]["service.instance.id"]
        assert poison.span_id == span_id_of(instance, poison.sequence).hex()
    # The noise of 30 s is in how long, not in whether: seconds lost with lost executions count as far as recorded.
    recorded = right["sequence"]["recorded"] / right["sequence"]["executions"]
    assert found.seconds_turned == pytest.approx(
        recorded * right["decisions"]["seconds_changed_for_the_worse"], rel=0.1
    )


@pytest.mark.parametrize("name", INFLATED)
def test_every_move_without_which_decisions_would_not_have_turned_is_named(cells: Path, name: str) -> None:
    """Those that poisoned a stretch of plain decode by the label, and none that is no labelled move of that graph."""
    right, found = truth(cells)[name], inflation(diagnosed(cells, name))
    labelled = {(move["sequence"], move["graph"]) for move in right["estimate_moves"]}
    first = {poison.sequence for poison in found.poisons}
    besides = {poison.sequence for poison in found.also_poisons}
    assert {(poison.sequence, poison.graph) for poison in (*found.poisons, *found.also_poisons)} <= labelled
    assert not first & besides
    of_spans = {
        sequence for span in right["plain_spans"] if not span["right"] for sequence in span["poisoned_by_sequences"]
    }
    assert of_spans <= first | besides
    said = " ".join(evidence.says for evidence in found.evidence)
    for poison in found.also_poisons:
        assert f"Execution {poison.sequence} of {poison.graph} held up the pipeline" in said


def test_a_second_graph_that_was_poisoned_is_named_beside_the_first(cells: Path) -> None:
    """P128's poison left P108 the winner; plain decode won only once P108 was poisoned too."""
    diagnosis = diagnosed(cells, "r020")
    found = inflation(diagnosis)
    assert [(poison.sequence, poison.graph) for poison in found.poisons] == [(159, "P128")]
    assert [(poison.sequence, poison.graph) for poison in found.also_poisons] == [(345, "P108")]
    assert [poison.sequence for poison in poisons_of(diagnosis)] == [159, 345]
    assert (
        "the estimate of P108 rose from 30.77 ms to 37.15 ms, which charged fairly would have won as well."
        in " ".join(evidence.says for evidence in found.evidence)
    )
    assert not inflation(diagnosed(cells, "r014")).also_poisons


def test_every_sentence_has_its_figures_and_its_query(cells: Path) -> None:
    for name in LABELLED:
        record = labelled_record(cells, name)
        sequences = {execution.graph_sequence for execution in record.executions}
        for finding in diagnosed(cells, name).findings:
            assert finding.evidence
            assert 0 <= finding.fraction <= 1
            assert 0 < finding.confidence <= 1
            assert finding.since_ns <= finding.until_ns
            for evidence in finding.evidence:
                assert evidence.says.endswith(".")
                assert evidence.queries
                assert finding.kind == Kind.EXECUTIONS_LOST or set(evidence.sequences) <= sequences
                for use in evidence.queries:
                    assert asked(use.name, use.parameters).sql


def verdicts(diagnosis: Diagnosis) -> tuple[object, ...]:
    poisons = [span.poisoned_by for span in diagnosis.being_in_plain.spans]
    sequences = [[poison.sequence for poison in of_span] for of_span in poisons]
    return diagnosis.label, set(diagnosis.also), diagnosis.being_in_plain.verdict, diagnosis.stuck_by_fault, sequences


def changed(record: CellRecord, change: dict[str, object]) -> CellRecord:
    return record_of((execution._replace(**change) for execution in record.executions), cell="x")


@pytest.mark.parametrize("name", LABELLED)
def test_neither_the_date_nor_the_names_matter(cells: Path, name: str) -> None:
    record = labelled_record(cells, name)
    names = {graph: f"G{n}" for n, graph in enumerate(sorted({e.graph_name for e in record.executions}, reverse=True))}

    def other(execution: GraphExecution) -> GraphExecution:
        candidates = tuple(names.setdefault(graph, f"G{len(names)}") for graph in execution.scheduler_candidate_graphs)
        return execution._replace(
            started_at=execution.started_at + SHIFT_NS,
            graph_name=names[execution.graph_name],
            scheduler_candidate_graphs=candidates,
            cell_id="another",
        )

    shifted = replace(
        record,
        executions=tuple(map(other, record.executions)),
        others_until_ns=tuple(until + SHIFT_NS for until in record.others_until_ns),
    )
    before, after = diagnosed(cells, name), diagnose(shifted)
    assert verdicts(after) == verdicts(before)
    assert after.expected_loss_percent == pytest.approx(before.expected_loss_percent, abs=1e-9)


@pytest.mark.parametrize("name", LABELLED)
def test_three_percent_lost_do_not_change_the_verdict(cells: Path, name: str) -> None:
    record, random = labelled_record(cells, name), np.random.default_rng(int(name[1:]))
    kept = random.random(len(record.executions)) >= 0.03
    kept[[0, -1]] = True
    thinned = replace(record, executions=tuple(e for e, keep in zip(record.executions, kept, strict=True) if keep))
    whole, part = diagnosed(cells, name), diagnose(thinned)
    assert part.label == whole.label
    lost = {Kind.EXECUTIONS_LOST}
    stumble = {Kind.HARMLESS_DELAY}
    # A single stumble can be among the lost.
    assert set(part.also) - lost - stumble == set(whole.also) - lost - stumble
    assert part.being_in_plain.verdict == whole.being_in_plain.verdict
    assert part.stuck_by_fault == whole.stuck_by_fault
    assert part.expected_loss_percent == pytest.approx(whole.expected_loss_percent, abs=0.7)


def test_a_lost_poison_is_still_a_fault(cells: Path) -> None:
    record = labelled_record(cells, "r014")
    without = replace(record, executions=tuple(e for e in record.executions if e.graph_sequence != 784))
    diagnosis = diagnose(without)
    assert diagnosis.stuck_by_fault
    (poison,) = inflation(diagnosis).poisons
    assert (poison.sequence, poison.graph) == (None, "P128")
    assert poison.estimate_after_ns == pytest.approx(38_731_514)
    assert inflation(diagnosis).confidence < inflation(diagnose(record)).confidence


def test_poisoned_before_the_record_begins(cells: Path) -> None:
    record = labelled_record(cells, "r014")
    late = replace(record, executions=tuple(e for e in record.executions if e.graph_sequence > 1000))
    earlier = tuple(e for e in record.executions if e.graph_sequence <= 780)
    diagnosis = diagnose(replace(late, before=earlier))
    assert diagnosis.being_in_plain.verdict == Verdict.WRONG
    assert diagnosis.stuck_by_fault
    assert inflation(diagnosis).poisoned_before
    assert not inflation(diagnosis).poisons
    stored = replace(late, before=tuple(e for e in record.executions if e.graph_sequence <= 1000))
    (poison,) = inflation(diagnose(stored)).poisons
    assert (poison.sequence, poison.estimate_after_ns) == (784, 38_731_514)


def test_a_cell_without_recorded_choices_accuses_nobody(cells: Path) -> None:
    nothing = {name: () for name in GraphExecution._fields if name.startswith("scheduler_candidate")}
    diagnosis = diagnose(changed(labelled_record(cells, "r014"), nothing))
    assert diagnosis.being_in_plain.verdict == Verdict.UNKNOWN
    assert diagnosis.being_in_plain.stuck
    assert not diagnosis.stuck_by_fault
    assert diagnosis.expected_loss_percent is None


def test_the_label_follows_from_the_findings(cells: Path) -> None:
    diagnosis = diagnosed(cells, "r049")
    assert tuple(findings_of(labelled_record(cells, "r049"))) == diagnosis.findings
    assert label_of(diagnosis.findings) == (diagnosis.label, diagnosis.also)
    assert label_of([]) == (Kind.HEALTHY, ())
