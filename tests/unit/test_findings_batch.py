"""A batch whose size changes, and GPU times that go with it or do not: neither a clock's drift nor a graph's rise."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from engine_hooks.contract.execution import GraphExecution
from engine_hooks.scheduler.graphs import drafts_under
from queries.alerts.finding import in_words
from queries.findings.acceptance import emitted_per_lane
from queries.findings.diagnosis import diagnose
from queries.findings.findings import Diagnosis, Finding, Kind, SpeedChange, Verdict
from queries.findings.record import record_of
from queries.postmortem.story import headline_of, story_of, words_of
from tests.fixtures.query_rows import believing, round_of
from tests.fixtures.replayed_cells import cell_of

GPU_MS = {"decode": 20.0, "P64": 28.5, "P128": 29.0}
BUDGETS = {"P64": 64, "P128": 128}
ACCEPTANCE = 0.3
SECONDS = 60.0
STEP_S = 25.0

Lanes = Callable[[float], int]
Factor = Callable[[float, str], float]


def with_the_batch(lanes: int) -> float:
    """A graph takes 0.6 % longer for each lane."""
    return 1 + 0.006 * lanes


def padded(_lanes: int) -> float:
    """A graph takes as long whatever its batch."""
    return 1.0


def once(at_s: float) -> int:
    return 8 if at_s < STEP_S else 24


def in_turn(at_s: float) -> int:
    return 20 if int(at_s / 7) % 2 else 8


def climbing(at_s: float) -> int:
    return 4 + int(24 * at_s / SECONDS)


def any_of_many(at_s: float) -> int:
    """Another batch every 0.3 s, of forty."""
    return 8 + (int(at_s / 0.3) * 17) % 40


def steady(_at_s: float, _graph: str) -> float:
    return 1.0


def drift(at_s: float, _graph: str) -> float:
    return 1.08 if at_s >= 31 else 1.0


def rise_of_p64(at_s: float, graph: str) -> float:
    return 1.12 if at_s >= 31 and graph == "P64" else 1.0


def tokens_of(graph: str, lanes: int, acceptance: float = ACCEPTANCE) -> float:
    return lanes * float(emitted_per_lane(acceptance, drafts_of(graph, lanes) / lanes))


def drafts_of(graph: str, lanes: int) -> int:
    drafts = drafts_under(BUDGETS[graph], lanes) if graph in BUDGETS else None
    return drafts.full * lanes + drafts.extra_lanes if drafts else 0


def run(
    lanes: Lanes,
    per_lane: Callable[[int], float] = with_the_batch,
    factor: Factor = steady,
    graph_at: Callable[[int, float], str] = lambda n, _at_s: ("decode", "P64")[n % 2],
) -> Iterator[GraphExecution]:
    """An engine that charges each graph what it costs; drafts are accepted as expected, but for whole tokens."""
    random, at_ms, n = np.random.default_rng(7), 0.0, 0
    while at_ms < 1000 * SECONDS:
        at_s = at_ms / 1000
        graph, many = graph_at(n, at_s), lanes(at_s)
        takes = {name: ms * per_lane(many) * factor(at_s, name) for name, ms in GPU_MS.items()}
        drafted = drafts_of(graph, many)
        accepted = int(tokens_of(graph, many) - many + random.random())
        fields: dict[str, Any] = {"batch_lanes": many, "batch_tokens_emitted": many + accepted}
        if drafted:
            fields |= {"batch_tokens_drafted": drafted, "batch_tokens_accepted": accepted}
        believed = believing({name: (ms, tokens_of(name, many)) for name, ms in takes.items()})
        gpu_ms = takes[graph] * random.normal(1, 0.01)
        yield round_of(n, at_ms, graph, gpu_ms, **fields, **believed)
        at_ms, n = at_ms + gpu_ms, n + 1


def speed_of(diagnosis: Diagnosis) -> list[SpeedChange]:
    return [finding for finding in diagnosis.findings if isinstance(finding, SpeedChange)]


def of_the_batch(diagnosis: Diagnosis) -> Finding | None:
    return next((finding for finding in diagnosis.findings if finding.kind == Kind.BATCH_CHANGED), None)


@pytest.mark.parametrize("graphs", [("decode", "P64"), ("P64",), ("P64", "P64", "P64", "P128")])
@pytest.mark.parametrize("lanes", [once, in_turn, climbing, any_of_many])
def test_what_the_batch_explains_is_no_finding(lanes: Lanes, graphs: tuple[str, ...]) -> None:
    diagnosis = diagnose(record_of(run(lanes, graph_at=lambda n, _: graphs[n % len(graphs)])))
    assert speed_of(diagnosis) == []
    finding = of_the_batch(diagnosis)
    assert finding
    assert "GPU times at different batch sizes are not compared" in finding.evidence[0].says
    assert (finding.loss_percent, finding.tokens_lost) == (0, 0)


def test_it_is_said_when_the_batch_changed() -> None:
    finding = of_the_batch(diagnose(record_of(run(once))))
    assert finding
    factor = with_the_batch(24) / with_the_batch(8)
    assert finding.evidence[0].quantities[0].value == pytest.approx(factor, abs=0.006)
    assert finding.evidence[0].says == (
        "The batch went from 8 to 24 lanes 25.0 s into the cell, and GPU times with it: decode takes 1.09 times as long at "
        "24 lanes as at 8. GPU times at different batch sizes are not compared, so that another cause at that moment would not "
        "show."
    )
    in_turns = of_the_batch(diagnose(record_of(run(in_turn))))
    assert in_turns
    assert in_turns.evidence[0].says.startswith(
        "The batch changed 8 times, between 8 and 20 lanes, and GPU times with it"
    )


@pytest.mark.parametrize("lanes", [lambda _: 16, once, in_turn, any_of_many])
@pytest.mark.parametrize("per_lane", [with_the_batch, padded])
def test_a_drift_within_one_batch_size_is_found(lanes: Lanes, per_lane: Callable[[int], float]) -> None:
    (found,) = speed_of(diagnose(record_of(run(lanes, per_lane, drift))))
    assert (found.kind, found.confidence) == (Kind.CLOCK_DRIFT, 0.98)
    assert found.ratio == pytest.approx(1.08, abs=0.012)
    assert found.graphs == ("P64", "decode")


@pytest.mark.parametrize("lanes", [lambda _: 16, once, in_turn, any_of_many])
@pytest.mark.parametrize("per_lane", [with_the_batch, padded])
def test_a_rise_of_one_graph_within_one_batch_size_is_found(lanes: Lanes, per_lane: Callable[[int], float]) -> None:
    (found,) = speed_of(diagnose(record_of(run(lanes, per_lane, rise_of_p64))))
    assert (found.kind, found.graphs) == (Kind.GRAPH_REGRESSION, ("P64",))
    assert found.ratio == pytest.approx(1.12, abs=0.012)


@pytest.mark.parametrize("factor", [steady, drift, rise_of_p64])
@pytest.mark.parametrize("lanes", [once, in_turn, climbing, any_of_many])
def test_a_batch_that_does_nothing_changes_nothing(lanes: Lanes, factor: Factor) -> None:
    """Graphs captured at one shape: what is found of GPU times is the same as with one batch throughout."""
    changing = list(run(lanes, padded, factor))
    diagnosis = diagnose(record_of(changing))
    assert of_the_batch(diagnosis) is None
    assert speed_of(diagnosis) == speed_of(diagnose(record_of(one._replace(batch_lanes=16) for one in changing)))


def hardly_p128(n: int, at_s: float) -> str:
    """P64 while it is best, then plain decode; P128 now and then until the batch changes, and never again."""
    if at_s < STEP_S:
        return "P128" if n % 40 == 0 else "P64"
    return "decode" if n % 80 else "P64"


def test_costs_and_tokens_are_those_of_the_batch() -> None:
    """At 24 lanes plain decode truly is 1.7 % ahead of P128, whose cost there follows from the others'."""
    diagnosis = diagnose(record_of(run(once, graph_at=hardly_p128)))
    ahead = tokens_of("decode", 24) / GPU_MS["decode"] / (tokens_of("P128", 24) / GPU_MS["P128"])
    assert ahead == pytest.approx(1.017, abs=0.001)
    plain = diagnosis.being_in_plain
    assert (plain.verdict, plain.unmeasured) == (Verdict.RIGHT, "")
    assert {span.truly_best_other for span in plain.spans} == {"P128"}
    for span in plain.spans:
        assert span.true_margin_percent == pytest.approx(100 * (ahead - 1), abs=1.0)
    assert diagnosis.expected_loss_percent == pytest.approx(0, abs=0.3)
    assert headline_of(diagnosis).endswith("and rightly so.")


def test_a_cost_that_nothing_shows_leaves_the_verdict_open() -> None:
    """No graph ran at both batch sizes: P64 may cost at 24 lanes what it did at 8, or up to three times as much."""
    executions = tuple(run(once, graph_at=lambda _, at_s: "P64" if at_s < STEP_S else "decode"))
    diagnosis = diagnose(record_of(executions))
    plain = diagnosis.being_in_plain
    assert plain.verdict == Verdict.UNKNOWN
    assert plain.unmeasured == "the cost of P64 at 24 lanes was not measured"
    assert headline_of(diagnosis) == (
        "Mostly in plain decode (58 %); whether rightly cannot be told: the cost of P64 at 24 lanes was not measured."
    )
    assert not diagnosis.is_well
    assert plain.seconds_wrong == 0
    said = " ".join(
        one.text for chapter in story_of(cell_of(executions), diagnosis).chapters for one in chapter.sentences
    )
    assert "whether rightly cannot be told (the cost of P64 at 24 lanes was not measured), in plain decode" in said
    assert "wrongly" not in said


def test_the_only_graph_that_ran_is_not_taken_for_the_clock() -> None:
    """P64 alone, 8 % slower in the end: the clock, or P64 by itself, which nobody can say."""
    diagnosis = diagnose(record_of(run(lambda _: 16, padded, drift, graph_at=lambda _n, _at_s: "P64")))
    assert (diagnosis.label, diagnosis.findings[0].confidence) == (Kind.CLOCK_DRIFT, 0.6)
    assert headline_of(diagnosis).startswith("P64 became slower, and whether others did was not seen; ")
    told = in_words(diagnosis, "r001", datetime(2026, 11, 1, tzinfo=UTC))
    assert "- P64 became slower, and whether others did was not seen since 2026-11-01 00:00:3" in told
    assert "clock drift" not in told
    witnessed = diagnose(record_of(run(lambda _: 16, padded, drift)))
    assert [words_of(finding) for finding in speed_of(witnessed)] == ["the GPU's clock drifted"]
