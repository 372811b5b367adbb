"""The closed loop on records that are thin, or full of holes."""

import pytest

from engine_hooks.simulator.parameters import S_NS, Scenario, steady
from queries.errors import CallError
from queries.replay.closed_loop import closed_loop, counted, error_percent, with_lost_ones
from queries.replay.fitting import fitted
from queries.replay.replaying import Form, replay_of
from queries.replay.screen import as_json
from tests.fixtures.replayed_cells import cell_of, live

SHORT = Scenario("short", phases=steady(), duration_ns=8 * S_NS)


@pytest.mark.parametrize("field", ["graph_gpu_time_ns", "batch_tokens_emitted"])
def test_without_times_or_tokens_there_is_no_simulation(field: str) -> None:
    bare = tuple(one._replace(**{field: 0}) for one in live(SHORT, "exposed_mean", seed=1))  # type: ignore[arg-type]
    with pytest.raises(CallError, match="cannot be simulated"):
        fitted(cell_of(bare))


def test_lost_executions_are_made_up_for() -> None:
    executions = live(SHORT, "drained_share", seed=1)
    kept = tuple(one for one in executions if one.graph_sequence % 10)
    assert len(with_lost_ones(kept)) == pytest.approx(len(executions), abs=2)
    loop = closed_loop(cell_of(kept), "drained_share", 2)
    assert loop.recorded_tokens_per_s == pytest.approx(counted(executions).tokens_per_s, rel=0.02)
    assert any(" lost; each is counted as one more round" in note for note in loop.notes)


def test_more_lost_than_left_is_said_and_not_made_up_for() -> None:
    executions = live(SHORT, "drained_share", seed=1)
    jumped = tuple(one._replace(graph_sequence=one.graph_sequence * 10**9) for one in executions)
    assert with_lost_ones(jumped) == jumped


def test_every_run_is_heard_of_and_the_same_call_gives_the_same_figures() -> None:
    cell = cell_of(live(SHORT, "exposed_mean", seed=1))
    heard: list[tuple[int, int]] = []
    first = replay_of(cell, "idle_gap", form=Form.CLOSED_LOOP, seeds=2, on_progress=lambda *far: heard.append(far))
    assert heard == [(number, 6) for number in range(1, 7)]
    again = replay_of(cell, "idle_gap", form=Form.CLOSED_LOOP, seeds=2)
    assert first.closed_loop == again.closed_loop
    assert first.exact is None
    assert first.replay_id != again.replay_id


@pytest.mark.parametrize("recorded", ["vendor", ""])
def test_a_model_in_charge_that_is_none_of_ours_is_named_and_not_simulated(recorded: str) -> None:
    executions = (one._replace(scheduler_cost_model=recorded) for one in live(SHORT, "exposed_mean", seed=1))
    replay = replay_of(cell_of(tuple(executions)), "idle_gap", seeds=2)
    assert replay.recorded_cost_model == recorded
    assert replay.closed_loop is not None
    assert not replay.closed_loop.recorded_model
    none_of_ours = "the model in charge, vendor, is not simulated: it is none of exposed_mean, drained_share, startup_median, idle_gap"
    assert (none_of_ours in replay.closed_loop.notes) == bool(recorded)
    assert as_json(replay)["recorded_cost_model"] == recorded


def test_the_error_holds_the_spread_of_the_fit_and_the_misfit() -> None:
    loop = closed_loop(cell_of(live(SHORT, "exposed_mean", seed=1)), "drained_share", 4)
    assert loop.error_percent > abs(loop.calibration_percent)
    low, high = loop.interval
    assert (low + high) / 2 == pytest.approx(loop.tokens_per_s)
    assert 0 < 100 * (high / loop.tokens_per_s - 1) == pytest.approx(loop.error_percent)


@pytest.mark.parametrize(("acceptance_error", "calibration"), [(0.0, 0.0), (0.05, 0.0), (0.0, 0.03), (0.05, 0.03)])
def test_the_error_is_the_prediction_interval_worked_out_by_hand(acceptance_error: float, calibration: float) -> None:
    # Student's t of 2 degrees of freedom has its quantiles in closed form: of p, (2p - 1) * sqrt(2 / (4p (1 - p))).
    t = 0.95 * (2 / (4 * 0.975 * 0.025)) ** 0.5
    # Speeds of 90, 100 and 110: a mean of 100, a variance of 100, and a further run's of 4/3 of that.
    of_runs = t**2 * (4 / 3 * 0.1**2 + acceptance_error**2)
    assert error_percent([90, 100, 110], acceptance_error, calibration) == pytest.approx(
        100 * (of_runs + calibration**2) ** 0.5
    )
