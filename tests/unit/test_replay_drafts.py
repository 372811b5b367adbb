"""Replays of an engine whose drafts come from a graph of their own: the drafts cost what they cost."""

import pytest

from engine_hooks.contract.names import GraphKind
from engine_hooks.cost_model.registry import cost_model_named
from engine_hooks.scheduler.scheduler import Scheduler
from queries.replay.closed_loop import counted
from queries.replay.replaying import Form, Replay, replay_of
from queries.replay.rounds import by_rounds
from queries.replay.words import caveats
from tests.fixtures.drafting_engine import DECODE, MS, P64, Charging, DraftingEngine
from tests.fixtures.query_rows import round_of
from tests.fixtures.replayed_cells import cell_of

DRAFT = {"graph_kind": GraphKind.DRAFT}


def embedded(*, passes_drafts_on: bool) -> DraftingEngine:
    scheduler = Scheduler((DECODE, P64), cost_model_named("drained_share"))
    return DraftingEngine(scheduler, lambda _: 0.36, passes_drafts_on=passes_drafts_on)


def mixed(now_ns: int) -> float:
    """0.9, and 0.5 from 20 s on."""
    return 0.9 if now_ns < 20e9 else 0.5


def replayed(engine: DraftingEngine, form: Form = Form.BOTH) -> Replay:
    return replay_of(cell_of(engine.run(40)), "drained_share", form=form, seeds=3)


def test_a_record_by_rounds() -> None:
    rounds = (
        round_of(0, 0, "drafter", 7, graph_queue_depth=0, wall_ms=9, **DRAFT),
        round_of(1, 1, "drafter", 7, **DRAFT),
        round_of(2, 2, "P64", 29, graph_queue_depth=2),
        round_of(3, 3, "decode", 20, graph_queue_depth=3),
        round_of(5, 5, "drafter", 7, graph_queue_depth=2, **DRAFT),
        round_of(6, 6, "P64", 29, graph_queue_depth=3),
    )
    found = by_rounds(cell_of(rounds))
    whole, decode, second = found.cell.executions
    assert (whole.graph_name, whole.graph_gpu_time_ns, whole.graph_wall_time_ns) == ("P64", 43 * MS, 45 * MS)
    assert (whole.started_at, whole.graph_queue_depth) == (rounds[0].started_at, 0)
    assert whole.started_at + whole.duration_ns == rounds[2].started_at + rounds[2].duration_ns
    # One of the three that were in flight for the record; number 4 was lost, of the two before the second draft.
    assert (decode.graph_queue_depth, second.graph_queue_depth) == (1, 2)
    assert [one.graph_sequence for one in found.cell.executions] == [0, 1, 3]
    assert (found.recorded, found.drafting) == ({0: 2, 1: 3, 3: 6}, 2)


def test_without_drafts_a_record_stays_as_it_is() -> None:
    cell = cell_of((round_of(0, 0, "P64", 29), round_of(1, 29, "decode", 20)))
    assert by_rounds(cell).cell is cell


def test_a_model_that_is_told_of_drafts_gives_its_charges_again() -> None:
    exact = replayed(embedded(passes_drafts_on=True), Form.EXACT).exact
    assert exact
    assert exact.agreement == 1
    assert not exact.different


def test_told_of_drafts_it_would_have_decoded_plainly() -> None:
    """Speculating gave 569 tokens/s, and the engine that passes its drafts on gives 796."""
    replay = replayed(embedded(passes_drafts_on=False))
    assert replay.exact
    ordinary = replay.exact.ordinary
    assert sum(one.replayed_graph_name == "decode" for one in ordinary) > 0.99 * len(ordinary)
    numbers = {one.graph_sequence for one in replay.exact.decisions}
    assert numbers <= {
        one.graph_sequence for one in embedded(passes_drafts_on=False).run(40) if one.graph_kind != "draft"
    }
    loop = replay.closed_loop
    assert loop
    live = counted(embedded(passes_drafts_on=True).run(40)).tokens_per_s
    assert loop.tokens_per_s == pytest.approx(live, rel=0.02)
    assert loop.calibration_percent == pytest.approx(0, abs=1)
    assert any("draft executions" in one for one in caveats(replay))


def test_no_gain_is_promised_where_plain_decode_was_right() -> None:
    own = Charging((int(20.1 * MS), int(43.1 * MS)), lambda now_ns: mixed(now_ns - int(1e9)))
    loop = replayed(DraftingEngine(own, mixed)).closed_loop
    assert loop
    assert loop.gain_percent < 1
