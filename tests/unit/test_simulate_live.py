"""The live engine on a clock that the test turns: paced, placed on the calendar, stuck only where it is fooled."""

from collections.abc import Iterator

import pytest

from engine_hooks.contract.execution import GraphExecution
from engine_hooks.contract.names import CELL_WINDOW_NS, GraphKind, Purpose
from engine_hooks.cost_model.errors import UnknownCostModelError
from engine_hooks.simulator.live import OFF_BY_MAX_NS, LiveEngine, WallClock
from engine_hooks.simulator.parameters import S_NS

BEGAN_UNIX_NS = 1_795_975_710 * S_NS
STUCK_ABOVE = 0.3
DECODING_MIN_NS = 3 * S_NS
"""Less decoding raises no flag: `docs/metrics.md`."""


class TurnedClock:
    """Both clocks of a machine on which nothing takes time but sleeping."""

    def __init__(self, unix_ns: int = BEGAN_UNIX_NS) -> None:
        self.monotonic_ns = 7
        self.unix_ns = unix_ns

    def sleep(self, seconds: float) -> None:
        self.advance(round(seconds * S_NS))

    def advance(self, by_ns: int) -> None:
        self.monotonic_ns += by_ns
        self.unix_ns += by_ns

    def wall_clock(self) -> WallClock:
        return WallClock(lambda: self.unix_ns, lambda: self.monotonic_ns, self.sleep)


def lived(model: str, seconds: float, *, seed: int = 0, unix_ns: int = BEGAN_UNIX_NS) -> list[GraphExecution]:
    """What a live engine recorded in that time."""
    recorded: list[GraphExecution] = []
    clock = TurnedClock(unix_ns)
    LiveEngine(model, seed, recorded.append, clock=clock.wall_clock()).run(seconds)
    return recorded


def test_an_execution_is_recorded_when_the_calendar_has_reached_its_completion() -> None:
    clock = TurnedClock()
    late_ns: list[int] = []
    engine = LiveEngine(
        "drained_share",
        0,
        lambda execution: late_ns.append(clock.unix_ns - execution.started_at - execution.duration_ns),
        clock=clock.wall_clock(),
    )
    engine.run(20)
    assert len(late_ns) > 500
    assert min(late_ns) >= 0
    assert max(late_ns) < 0.3 * S_NS
    assert clock.unix_ns - BEGAN_UNIX_NS == pytest.approx(20 * S_NS, abs=0.3 * S_NS)


def test_sequence_numbers_have_no_gap() -> None:
    assert [execution.graph_sequence for execution in lived("exposed_mean", 12)] == list(
        range(len(lived("exposed_mean", 12)))
    )


def test_it_stops_within_a_round_when_told_to() -> None:
    clock = TurnedClock()
    recorded: list[GraphExecution] = []

    def record(execution: GraphExecution) -> None:
        recorded.append(execution)
        if len(recorded) == 100:
            engine.stop()

    engine = LiveEngine("exposed_mean", 0, record, clock=clock.wall_clock())
    engine.run()
    assert 100 <= len(recorded) <= 103


def test_after_a_suspension_it_goes_on_from_the_present() -> None:
    clock = TurnedClock()
    wall = clock.wall_clock()
    wall.wait_until(S_NS)
    clock.unix_ns += 3600 * S_NS  # asleep: the monotonic clock stood still
    wall.wait_until(2 * S_NS)
    assert wall.unix_of(2 * S_NS) == clock.unix_ns == BEGAN_UNIX_NS + 3602 * S_NS
    wall.wait_until(3 * S_NS)
    assert wall.unix_of(3 * S_NS) == clock.unix_ns == BEGAN_UNIX_NS + 3603 * S_NS


def test_a_machine_that_is_a_little_late_catches_up() -> None:
    clock = TurnedClock()
    wall = clock.wall_clock()
    clock.advance(OFF_BY_MAX_NS // 2)
    wall.wait_until(1)
    assert wall.unix_of(1) == BEGAN_UNIX_NS + 1
    assert clock.unix_ns == BEGAN_UNIX_NS + OFF_BY_MAX_NS // 2


def test_a_machine_too_slow_for_its_engine_does_not_hurry_after_it() -> None:
    clock = TurnedClock()
    wall = clock.wall_clock()
    clock.advance(10 * S_NS)
    wall.wait_until(S_NS)
    assert wall.unix_of(S_NS) == clock.unix_ns


def plain_fractions(executions: list[GraphExecution]) -> Iterator[float]:
    """Of each 30 s window that has decoded long enough to be judged."""
    windows: dict[int, list[int]] = {}
    for execution in executions:
        if execution.graph_purpose == Purpose.ORDINARY and execution.graph_kind != GraphKind.PREFILL:
            sums = windows.setdefault(execution.started_at // CELL_WINDOW_NS, [0, 0])
            sums[execution.graph_kind == GraphKind.SPECULATIVE] += execution.graph_wall_time_ns
    for plain_ns, speculative_ns in windows.values():
        if plain_ns + speculative_ns >= DECODING_MIN_NS:
            yield plain_ns / (plain_ns + speculative_ns)


@pytest.mark.parametrize("into_window_s", range(0, 30, 5))
def test_wherever_in_a_window_it_starts_the_fooled_engine_is_stuck_within_half_a_minute(into_window_s: int) -> None:
    began_ns = BEGAN_UNIX_NS + into_window_s * S_NS
    fooled = lived("exposed_mean", 25, seed=into_window_s, unix_ns=began_ns)
    assert any(fraction > STUCK_ABOVE for fraction in plain_fractions(fooled))


@pytest.mark.parametrize("model", ["drained_share", "idle_gap"])
def test_the_corrected_engine_never_is(model: str) -> None:
    assert max(plain_fractions(lived(model, 600))) < STUCK_ABOVE


def test_the_fooled_engine_goes_on_being_fooled_now_and_then() -> None:
    stuck = [fraction > STUCK_ABOVE for fraction in plain_fractions(lived("exposed_mean", 1200))]
    assert 0.15 < sum(stuck) / len(stuck) < 0.75


def test_an_unknown_model_is_named() -> None:
    with pytest.raises(UnknownCostModelError, match="no cost model is called 'mean'; there are exposed_mean, "):
        LiveEngine("mean", 0, lambda _: None)
