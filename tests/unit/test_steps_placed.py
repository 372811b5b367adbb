"""Where steps of engines that are never idle lie on a calendar that goes its own way."""

from abc import ABC, abstractmethod
from collections import deque
from typing import Any

import pytest

from engine_hooks.adapters.sglang.step import Submission
from engine_hooks.adapters.sglang.steps import Steps as SglangSteps
from engine_hooks.adapters.sglang.steps import Tokens
from engine_hooks.adapters.vllm.steps import Results
from engine_hooks.adapters.vllm.steps import Steps as VllmSteps
from engine_hooks.contract.execution import GraphExecution
from engine_hooks.contract.names import GraphKind
from engine_hooks.recorder.clock import RENEWED_NS, Calendar
from tests.fixtures.vllm_fakes import DECODE, MS, scheduled

ROUND_NS = 5 * MS
DRIFT_NS = 100
"""A round: 20 us a second."""
SET_BY_NS = 3_000 * MS


class Engine(ABC):
    """Submits a step while the one before it still runs, for as long as it is let, with nothing ever idle."""

    def __init__(self) -> None:
        self.now_ns = 1_000 * MS
        self.ahead_ns = 0
        """How far the calendar has gone from the monotonic clock."""
        self.looked = 0
        self.off_ns: list[int] = []
        """How far from the calendar each step was placed, its submission's."""
        self.calendar = Calendar(lambda: self.now_ns, self._unix_ns)
        self.running: deque[Any] = deque()
        self._submitted_at: deque[int] = deque()

    def _unix_ns(self) -> int:
        self.looked += 1
        return self.now_ns + self.ahead_ns

    def _record(self, execution: GraphExecution) -> None:
        self.off_ns.append(execution.started_at - self._submitted_at.popleft())

    def run(self, seconds: float, drift_ns: int = 0) -> None:
        for _ in range(int(seconds * 1e9 / ROUND_NS)):
            self.now_ns += ROUND_NS
            self.ahead_ns += drift_ns
            self._submitted_at.append(self.now_ns + self.ahead_ns)
            self.submit()
            if len(self.running) > 1:
                self.finish()

    def rest(self) -> None:
        """The last step ends, and there is no work for a while."""
        self.finish()
        self.now_ns += 10 * ROUND_NS

    @abstractmethod
    def submit(self) -> None:
        """One step more."""

    @abstractmethod
    def finish(self) -> None:
        """The oldest ends."""


class Vllm(Engine):
    def __init__(self) -> None:
        super().__init__()
        self.steps = VllmSteps(self._record, queued=True, speculates=False, calendar=self.calendar)

    def submit(self) -> None:
        step = self.steps.submit(scheduled(DECODE), self.now_ns)
        assert step is not None
        self.running.append(step)

    def finish(self) -> None:
        step = self.steps.taken(self.running.popleft().output)
        assert step is not None
        self.steps.finish(step, Results(self.now_ns, 0, 0, 2))
        if not self.running:
            self.steps.idle()


class Sglang(Engine):
    def __init__(self) -> None:
        super().__init__()
        self.steps = SglangSteps(self._record, calendar=self.calendar)

    def submit(self) -> None:
        depth = len(self.running)
        submission = Submission(GraphKind.PLAIN_DECODE, "decode-2", 2, None, self.now_ns, depth, after_idle=not depth)
        self.running.append(self.steps.submit(submission))

    def finish(self) -> None:
        self.steps.finish(self.running.popleft(), Tokens(0, 0, 2), self.now_ns)


@pytest.fixture(params=[Vllm, Sglang])
def engine(request: pytest.FixtureRequest) -> Engine:
    made: Engine = request.param()
    return made


def test_the_calendar_is_followed_as_it_drifts(engine: Engine) -> None:
    engine.run(60, DRIFT_NS)
    in_between = RENEWED_NS // ROUND_NS + 2
    assert max(map(abs, engine.off_ns)) <= in_between * DRIFT_NS
    assert engine.looked <= 31 * 5  # five readings each time


def test_a_calendar_that_was_set_waits_for_idleness(engine: Engine) -> None:
    engine.run(1)
    engine.ahead_ns += SET_BY_NS
    engine.run(30)
    engine.rest()
    assert engine.off_ns[-1] == -SET_BY_NS
    before = len(engine.off_ns)
    engine.run(1)
    assert set(engine.off_ns[before:]) == {0}


def test_what_waits_for_its_device_times_is_placed_as_what_came_before_it() -> None:
    engine = Vllm()
    engine.run(1)
    waits = engine.running[0]
    waits.awaits_device = True
    engine.ahead_ns += SET_BY_NS
    engine.run(3)
    while engine.running:
        engine.finish()
    engine.run(0.02)
    waits.awaits_device = False
    engine.run(0.02)
    assert -SET_BY_NS in engine.off_ns
    assert set(engine.off_ns) == {0, -SET_BY_NS}
    turn = engine.off_ns.index(-SET_BY_NS)
    assert set(engine.off_ns[turn:]) == {-SET_BY_NS}


def test_a_calendar_that_was_set_waits_for_a_minute_at_most(engine: Engine) -> None:
    engine.run(1)
    engine.ahead_ns += SET_BY_NS
    engine.run(63)
    assert engine.off_ns[-1] == 0
