"""Rules of the findings, one after the other, on records of a few hundred rounds worked out by hand."""

from typing import Any

import pytest

from engine_hooks.contract.execution import GraphExecution
from engine_hooks.contract.names import Purpose
from queries.findings.acceptance import SEGMENTS_MAX, stretches_of
from queries.findings.costs import costs_of
from queries.findings.decisions import decisions_of
from queries.findings.diagnosis import diagnose
from queries.findings.findings import EndedBy, Ending, Kind
from queries.findings.record import record_of
from queries.findings.timeline import timeline_of
from tests.fixtures.query_rows import MS, believing, round_of

FAIR = believing({"decode": (13, 4), "P128": (29, 10)})
FOOLED = believing({"decode": (13, 4), "P128": (34.5, 10)})


def one_after_the_other(*rounds: tuple[str, float, dict[str, Any]]) -> list[GraphExecution]:
    """Rounds of a device that never waits: each a graph, its GPU time in ms, and what else is known of it."""
    made: list[GraphExecution] = []
    at_ms = 0.0
    for n, (graph, gpu_ms, fields) in enumerate(rounds):
        made.append(round_of(n, at_ms, graph, gpu_ms, **fields))
        at_ms += gpu_ms
    return made


@pytest.mark.parametrize(
    ("refreshed", "ending"),
    [("P128", Ending(EndedBy.REFRESH, "P128", 100)), ("P64", Ending(EndedBy.CHANGED))],
)
def test_plain_decode_ends_by_a_refresh_of_the_graph_that_is_then_chosen(refreshed: str, ending: Ending) -> None:
    rounds = one_after_the_other(
        *[("decode", 13, FOOLED)] * 100,
        (refreshed, 28, {"graph_purpose": Purpose.REFRESH, **FOOLED}),
        ("decode", 13, FOOLED),
        *[("P128", 28, FAIR)] * 50,
    )
    (span,) = diagnose(record_of(rounds)).being_in_plain.spans
    assert (span.from_sequence, span.to_sequence, span.ended) == (0, 101, ending)


def test_plain_decode_that_is_always_best_is_told_so() -> None:
    """4 tokens in 13 ms are more than 10 in 40."""
    rounds = one_after_the_other(*[("decode", 13, believing({"decode": (13, 4), "P128": (40, 10)}))] * 300)
    found = {one.kind: one for one in diagnose(record_of(rounds)).findings}
    assert found[Kind.PLAIN_RIGHT].evidence[0].says == (
        "100 % of the ordinary decoding time was plain decode, and 100 % of that time it was truly the best choice."
    )


def test_a_replay_at_start_up_says_nothing_of_the_host() -> None:
    """Each round but those is submitted 2 ms after the one before the one before it was seen to end."""
    fields: list[dict[str, Any]] = [
        *[{"graph_purpose": Purpose.REFRESH}] * 4,
        *[{}] * 2,
        {"graph_purpose": Purpose.REFRESH, **FAIR},
    ]
    rounds = [round_of(n, 30 * n, "P128", 30, **one)._replace(duration_ns=58 * MS) for n, one in enumerate(fields)]
    assert timeline_of(record_of(rounds)).host.tolist() == [-1] * 4 + [2 * MS] * 3


def gpu_ms_of(rounds: list[GraphExecution], graph: str, at_s: float) -> float:
    """What a graph takes on the device at an instant."""
    timeline = timeline_of(record_of(rounds))
    return float(costs_of(timeline).gpu[int(2 * at_s), timeline.graph_numbered(graph)]) / MS


def at_clocks(*steps: tuple[float, float, bool]) -> list[GraphExecution]:
    """Until so many seconds: how long a round of decode takes in ms, and whether one of P128, of thrice that, follows."""
    rounds: list[tuple[str, float, dict[str, Any]]] = []
    at_ms = 0.0
    for until_s, decode_ms, is_with_p128 in steps:
        while at_ms < 1000 * until_s:
            pair = [("decode", decode_ms), ("P128", 3 * decode_ms)][: 1 + is_with_p128]
            rounds += [(graph, gpu_ms, FAIR) for graph, gpu_ms in pair]
            at_ms += sum(gpu_ms for _, gpu_ms in pair)
    return one_after_the_other(*rounds)


def test_the_clock_at_an_instant_is_told_by_the_other_graphs() -> None:
    """P128 was last executed before the clock fell: it cannot tell, and has no vote."""
    rounds = at_clocks((5, 10, True), (6, 10, False), (14, 11, False))
    assert gpu_ms_of(rounds, "P128", 3) == pytest.approx(30)
    assert gpu_ms_of(rounds, "P128", 10) == pytest.approx(33, rel=1e-3)


def test_a_clock_that_recovered_is_that_of_before() -> None:
    rounds = at_clocks((3, 10, True), (12, 11, True), (13, 11, False), (18, 10, False))
    assert gpu_ms_of(rounds, "P128", 8) == pytest.approx(33)
    assert gpu_ms_of(rounds, "P128", 16) == pytest.approx(30, rel=1e-3)


def test_a_clock_that_recovered_but_for_noise_is_that_of_before() -> None:
    rounds = at_clocks((2, 10, True), (3, 10, False), (6, 11, False), (9.5, 10.03, False))
    assert gpu_ms_of(rounds, "P128", 9) == pytest.approx(30, abs=1e-6)


def test_a_graph_that_was_executed_speculating_is_not_plain_for_promising_a_token_a_lane() -> None:
    """Acceptance may have fallen to nothing. What was never executed is known by its promise alone."""
    charged = believing({"decode": (13, 4), "P128": (29, 4), "unused plain": (13, 4), "P64": (20, 6)})
    timeline = timeline_of(record_of(one_after_the_other(*[("decode", 13, charged), ("P128", 28, charged)] * 50)))
    decisions = decisions_of(timeline, costs_of(timeline), stretches_of(timeline))
    assert decisions
    assert [timeline.names[graph] for graph in decisions.plain] == ["decode", "unused plain"]


def test_acceptance_that_keeps_changing_is_cut_into_no_more_pieces_than_the_bound() -> None:
    """Sixteen changes, each of 40 rounds, and each far beyond chance."""
    accepted = [10 if n // 40 % 2 else 2 for n in range(640)]
    drafts = [{"batch_tokens_drafted": 12, "batch_tokens_accepted": one, **FAIR} for one in accepted]
    timeline = timeline_of(record_of(one_after_the_other(*[("P128", 28, one) for one in drafts])))
    assert 2 <= len(stretches_of(timeline)) <= SEGMENTS_MAX
