"""Every form of replay on records of next to nothing: answered or refused in one line, never an accident."""

from collections.abc import Callable
from io import StringIO
from typing import Any, Final

import pytest
from rich.console import Console

from dashboards.words.refusals import refusal_words
from engine_hooks.contract.execution import GraphExecution
from engine_hooks.contract.names import GraphKind
from engine_hooks.cost_model.registry import COST_MODELS
from engine_hooks.simulator.parameters import S_NS, Scenario, steady
from queries.errors import CallError, NotSimulatedError
from queries.replay import screen
from queries.replay.exact import can_be_taken_again
from queries.replay.fitting import ROUNDS_MIN
from queries.replay.replaying import Form, replay_of
from queries.replay.result import Replay
from tests.fixtures.replayed_cells import cell_of, live

RECORD: Final = live(Scenario("short", phases=steady(), duration_ns=4 * S_NS), "exposed_mean", seed=1)
ROUNDS: Final = RECORD[60:]
CHANGES: Final[dict[str, Callable[[GraphExecution], dict[str, Any]]]] = {
    "as recorded": lambda _: {},
    "one graph": lambda one: {
        "graph_name": "P128",
        "graph_kind": GraphKind.SPECULATIVE,
        "batch_tokens_drafted": 96,
        "scheduler_candidate_graphs": ("P128",),
        "scheduler_candidate_estimates_ns": (one.graph_wall_time_ns,),
        "scheduler_candidate_expected_tokens": (70.0,),
    },
    "prefills": lambda _: {
        "graph_kind": GraphKind.PREFILL,
        "scheduler_candidate_graphs": (),
        "scheduler_candidate_estimates_ns": (),
        "scheduler_candidate_expected_tokens": (),
    },
    "decisions of prefills": lambda _: {"graph_kind": GraphKind.PREFILL},
    "no candidates": lambda _: {
        "scheduler_candidate_graphs": (),
        "scheduler_candidate_estimates_ns": (),
        "scheduler_candidate_expected_tokens": (),
    },
    "no estimates": lambda _: {"scheduler_estimate_ns": None, "scheduler_candidate_estimates_ns": ()},
    "charged nothing": lambda one: {
        "scheduler_candidate_estimates_ns": tuple(0 for _ in one.scheduler_candidate_graphs)
    },
    "nothing expected": lambda one: {
        "scheduler_candidate_expected_tokens": tuple(0.0 for _ in one.scheduler_candidate_graphs)
    },
    "all at once": lambda _: {"started_at": ROUNDS[0].started_at, "duration_ns": 0},
    "no GPU times": lambda _: {"graph_gpu_time_ns": 0},
    "no tokens": lambda _: {"batch_tokens_emitted": None},
    "no batch": lambda _: {"batch_lanes": None, "batch_tokens_drafted": None, "batch_tokens_accepted": None},
    "no device starts": lambda _: {"graph_gpu_start_offset_ns": None, "graph_queue_depth": None},
}
EXACT_REFUSES: Final = {"prefills", "no candidates", "no estimates"}
LENGTHS: Final = (1, 2, 3, ROUNDS_MIN - 1, 40)


def thin(kind: str, length: int) -> tuple[GraphExecution, ...]:
    return tuple(one._replace(**CHANGES[kind](one)) for one in ROUNDS[:length])


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("kind", CHANGES)
def test_the_exact_form_is_answered_wherever_a_decision_is_recorded(kind: str, length: int) -> None:
    cell = cell_of(thin(kind, length))
    for model in COST_MODELS:
        if kind in EXACT_REFUSES:
            with pytest.raises(CallError, match="there is nothing to replay"):
                replay_of(cell, model, form=Form.EXACT)
        else:
            replay = replay_of(cell, model, form=Form.EXACT)
            assert replay.exact
            assert len(replay.exact.decisions) == sum(map(can_be_taken_again, cell.executions)) > 0
            assert not replay.not_simulated


@pytest.mark.parametrize("history", [False, True], ids=["alone", "with history"])
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("kind", CHANGES)
def test_a_simulation_is_made_or_refused_in_one_line_beside_the_exact_form(
    kind: str, length: int, history: bool
) -> None:
    cell = cell_of(thin(kind, length), RECORD[:60] if history else ())
    if kind in EXACT_REFUSES:
        with pytest.raises(CallError, match="there is nothing to replay"):
            replay_of(cell, "drained_share", form=Form.BOTH, seeds=2)
        return
    both = replay_of(cell, "drained_share", form=Form.BOTH, seeds=2)
    assert both.exact
    assert bool(both.closed_loop) != bool(both.not_simulated)
    assert shown(both).count("Not simulated") == bool(both.not_simulated)
    assert screen.as_json(both)["not_simulated"] == (both.not_simulated or None)
    if length < ROUNDS_MIN:
        assert both.not_simulated
    if both.not_simulated:
        with pytest.raises(NotSimulatedError) as refused:
            replay_of(cell, "drained_share", form=Form.CLOSED_LOOP, seeds=2)
        assert refusal_words(str(refused.value)) == refusal_words(both.not_simulated)


def shown(replay: Replay) -> str:
    out = StringIO()
    screen.show(Console(file=out, width=200), replay)
    return out.getvalue()


def test_a_record_that_is_too_short_says_so() -> None:
    short = replay_of(cell_of(ROUNDS[:1]), "drained_share", seeds=2)
    told = "the record of cell cell-1 is too short, 1 decode round of the 8 that a fit needs"
    assert short.not_simulated == told
    assert f"\nNot simulated: {told}.\n" in shown(short)
    assert short.parameters["seeds"] == "0"


def test_a_speculative_round_without_a_draft_spoils_nothing() -> None:
    bare = [one for one in ROUNDS[:60] if one.graph_kind == GraphKind.SPECULATIVE][5]
    record = tuple(
        one._replace(batch_tokens_drafted=0, batch_tokens_accepted=0) if one is bare else one for one in ROUNDS[:60]
    )
    assert replay_of(cell_of(record), "drained_share", seeds=2).closed_loop
