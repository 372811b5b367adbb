"""The exact form: what was known then, what is the model's choice, and what a thin record leaves open."""

import io
from collections.abc import Iterator

import pytest
from rich.console import Console

from engine_hooks.contract.execution import GraphExecution
from engine_hooks.contract.names import Purpose
from engine_hooks.cost_model.registry import COST_MODELS, cost_model_named
from engine_hooks.simulator.parameters import Rounds, Scenario, steady
from engine_hooks.simulator.scenarios import SCENARIOS
from queries.errors import CallError
from queries.replay.exact import decisions_again
from queries.replay.replaying import Form, Replay, exact_replay, replay_of
from queries.replay.screen import show
from queries.replay.words import bars, caveats, first_difference, shares_different, swaps_of
from tests.fixtures.query_rows import MS, believing, round_of
from tests.fixtures.replayed_cells import cell_of, live, tail_of

DELAYED = Scenario("delays", phases=steady(delay_rate_hz=0.2, delay_rounds=Rounds.ALL))
NEAR_TIE = believing({"P128": (29, 72), "decode": (13.5, 32)})
"""P128 by 4.7 %."""


def measured(sequence: int, at_ms: float, graph: str, gpu_ms: float) -> GraphExecution:
    return round_of(sequence, at_ms, graph, gpu_ms, wall_ms=gpu_ms, graph_purpose=Purpose.REFRESH)


@pytest.mark.parametrize("model", COST_MODELS)
@pytest.mark.parametrize("scenario", ["bursts of 5 delays every 10 s", "host 1.5x on speculative rounds until 20 s"])
def test_its_own_model_takes_every_decision_again(model: str, scenario: str) -> None:
    exact = exact_replay(cell_of(live(SCENARIOS[scenario], model, seed=11)), model)
    assert (exact.agreement, exact.different, exact.decisions_cold) == (1.0, (), 0)
    assert len(exact.ordinary) > 1000
    assert exact.history.from_startup


@pytest.mark.parametrize(("late_ns", "charged_ms"), [(-1, 40), (0, 29)])
def test_an_execution_is_known_if_it_was_observed_before_the_submission(late_ns: int, charged_ms: float) -> None:
    rounds = [
        measured(0, 0, "P128", 29),
        measured(1, 30, "decode", 13),
        measured(2, 100, "P128", 51)._replace(duration_ns=100 * MS + late_ns),
        round_of(3, 200, "P128", 29, **NEAR_TIE),
    ]
    (decision,) = decisions_again(rounds, cost_model_named("startup_median"), 0)
    assert decision.candidate_estimates_ns == (charged_ms * MS, 13 * MS)
    assert decision.replayed_graph_name == ("P128" if charged_ms == 29 else "decode")


def test_what_was_not_measured_is_charged_as_first_recorded() -> None:
    rounds = [
        measured(4, 0, "decode", 13),
        round_of(5, 50, "P128", 29, **NEAR_TIE),
        round_of(6, 100, "P128", 31, **NEAR_TIE),
    ]
    exact = exact_replay(cell_of(tuple(rounds)), "startup_median")
    assert [one.cold for one in exact.decisions] == [True, False]
    assert [one.candidate_estimates_ns for one in exact.decisions] == [(29 * MS, 13 * MS)] * 2
    replay = replay_of(cell_of(tuple(rounds)), "startup_median", form=Form.EXACT)
    (said,) = caveats(replay)
    assert "and 1 decision was taken with a graph that it had not seen yet" in said


def test_refreshes_are_no_models_choice() -> None:
    rounds = [
        measured(0, 0, "decode", 13),
        measured(1, 20, "P128", 60),
        round_of(2, 100, "P128", 60, graph_purpose=Purpose.REFRESH, **NEAR_TIE),
        round_of(3, 200, "P128", 29, **NEAR_TIE),
    ]
    refresh, ordinary = exact_replay(cell_of(tuple(rounds)), "startup_median").decisions
    assert (refresh.replayed_graph_name, refresh.differs) == ("P128", False)
    assert (ordinary.replayed_graph_name, ordinary.differs) == ("decode", True)
    assert ordinary.margin == pytest.approx(32 / 13 / (72 / 60) - 1)


def test_decisions_that_do_not_say_what_they_chose_from_are_left_out_and_counted() -> None:
    thin = {**NEAR_TIE, "scheduler_candidate_expected_tokens": ()}
    whole = [measured(0, 0, "decode", 13), round_of(1, 50, "P128", 29, **NEAR_TIE)]
    exact = exact_replay(cell_of((*whole, round_of(2, 100, "P128", 29, **thin))), "startup_median")
    assert (len(exact.decisions), exact.decisions_unusable) == (1, 1)
    with pytest.raises(CallError, match="nothing to replay"):
        exact_replay(cell_of((round_of(2, 100, "P128", 29, **thin),)), "startup_median")


def test_the_history_teaches_the_model_and_is_not_replayed() -> None:
    executions = live(DELAYED, "exposed_mean", seed=5)
    cell = tail_of(executions, after_s=12)
    exact = exact_replay(cell, "exposed_mean")
    assert (exact.agreement, exact.decisions_cold) == (1.0, 0)
    assert exact.history.executions == len(cell.before)
    assert exact.history.seconds == pytest.approx(12, abs=0.1)
    alone = exact_replay(cell._replace(before=()), "exposed_mean")
    assert alone.agreement is not None
    assert alone.agreement < 0.5
    assert alone.decisions_cold > 0


def test_lost_executions_are_counted() -> None:
    executions = live(DELAYED, "exposed_mean", seed=5)
    kept = tuple(one for one in executions if one.graph_sequence % 50 or not one.graph_sequence)
    replay = replay_of(cell_of(kept), "drained_share", form=Form.EXACT)
    assert replay.exact
    assert replay.exact.history.executions_lost == len(executions) - len(kept)
    assert any(said.startswith("Missing in the record: ") for said in caveats(replay))


def test_a_fooled_cell_is_told_in_words() -> None:
    replay = replay_of(cell_of(live(DELAYED, "exposed_mean", seed=4010)), "drained_share", form=Form.EXACT)
    assert replay.exact
    first = replay.exact.different[0]
    said = first_difference(replay)
    swaps = swaps_of(replay.exact)
    commonest = max(swaps, key=lambda swap: swap.decisions)
    told = next(one for one in replay.exact.different if one.graph_name == commonest.graph_name)
    assert f"(sequence {told.graph_sequence}) {told.graph_name} was chosen" in said
    assert "drained_share would have charged" in said
    assert sum(swap.decisions for swap in swaps) == len(replay.exact.different)
    assert swaps == sorted(swaps, key=lambda swap: -swap.seconds)
    shares = shares_different(replay, 30)
    first_bin = next(number for number, share in enumerate(shares) if share)
    assert first_bin == (first.started_at - replay.began_at) * 30 // (replay.ended_at - replay.began_at)
    assert len(bars(shares)) == 30
    assert bars([0.0, 0.01, 0.5, 1.0, None]) == " ▁▄█·"


def shown(replay: Replay) -> str:
    """What the terminal has of it, on one line."""
    console = Console(width=400, record=True, file=io.StringIO())
    show(console, replay)
    return " ".join(console.export_text().split())


def test_the_terminal_tells_what_would_be_different_where_anything_would() -> None:
    fooled, same = (
        replay_of(cell_of(live(DELAYED, model, seed=seed)), "drained_share", form=Form.EXACT)
        for model, seed in (("exposed_mean", 4010), ("drained_share", 5))
    )
    assert fooled.exact
    for swap in swaps_of(fooled.exact):
        assert f" {swap.graph_name} {swap.replayed_graph_name} {swap.decisions:,} {swap.seconds:.2f}" in shown(fooled)
    for replay, is_different in ((fooled, True), (same, False)):
        text = shown(replay)
        assert all(said in text for said in (first_difference(replay), *caveats(replay)))
        line = " ".join(f"0 s {bars(shares_different(replay, 60))} 30 s".split())
        assert ("chosen instead decisions s" in text, line in text) == (is_different, is_different)


def test_the_same_model_says_so() -> None:
    replay = replay_of(cell_of(live(DELAYED, "drained_share", seed=5)), "drained_share", form=Form.EXACT)
    assert first_difference(replay) == "drained_share would have chosen every graph that was chosen."
    assert any("100.0 % of the decisions come out to the ns" in said for said in caveats(replay))


def test_the_sentence_is_about_the_commonest_change() -> None:
    """Charged once more than it costs, decode is left for P128 once; P64, charged too little, a hundred times for decode."""
    once = believing({"P128": (40, 72), "decode": (13.5, 32), "P64": (35, 40)})
    often = believing({"P128": (60, 72), "decode": (13.5, 32), "P64": (10, 40)})
    measurements = [measured(0, 0, "P128", 29), measured(1, 30, "decode", 13), measured(2, 60, "P64", 20)]
    rounds = [round_of(3, 100, "decode", 13, **once)]
    rounds += [round_of(4 + n, 120 + 20 * n, "P64", 20, **often) for n in range(100)]
    replay = replay_of(cell_of((*measurements, *rounds)), "startup_median", form=Form.EXACT)
    assert replay.exact
    assert [(one.decisions, one.graph_name) for one in swaps_of(replay.exact)] == [(100, "P64"), (1, "decode")]
    assert "(sequence 4) P64 was chosen" in first_difference(replay)


def slow_with_p64() -> Iterator[GraphExecution]:
    """A host two in flight that takes 50 ms for each round, whose device takes 29, and so comes late with each."""
    charged = believing({"P64": (29, 50.0), "P128": (42, 72.0), "decode": (13, 16.0)})
    yield from (
        measured(n, 60 * n, graph, ms) for n, (graph, ms) in enumerate([("P64", 29), ("P128", 28), ("decode", 20)])
    )
    for n in range(3, 203):
        drafts = {"batch_tokens_drafted": 12, "batch_tokens_accepted": 6}
        late = round_of(n, 200 + 50 * n, "P64", 29, wall_ms=50, graph_queue_depth=0, **charged, **drafts)
        # What has ended is seen as the next is submitted.
        yield late._replace(duration_ns=50 * MS)


def test_a_slow_hosts_time_with_a_graph_that_hardly_ran_is_told_to_be_unknown() -> None:
    executions = tuple(slow_with_p64())
    replay = replay_of(cell_of(executions), "startup_median", form=Form.EXACT)
    (said,) = (said for said in caveats(replay) if "host" in said)
    assert said == (
        "The host was slower than the device with P64; how long it takes with P128 (1 round in the cell) is hardly known, so "
        "that the gain may be less or more than it looks."
    )
    on_time = tuple(one._replace(duration_ns=29 * MS, graph_wall_time_ns=29 * MS) for one in executions)
    assert not [
        said for said in caveats(replay_of(cell_of(on_time), "startup_median", form=Form.EXACT)) if "host" in said
    ]
