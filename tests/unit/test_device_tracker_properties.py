"""What holds of the tracker whatever an engine and its device do."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from engine_hooks.adapters.device.pairs import EventPair
from engine_hooks.adapters.device.tracker import ExecutionTracker, Times, TrackerSettings
from engine_hooks.contract.names import GraphKind
from tests.fixtures.fake_device import MS, FakeDevice, FakeEvent

PAIRS = 6
AGE_MAX_NS = 2_000 * MS
FALLIBLE = ("available", "current_stream", "record", "done", "elapsed_ns", "anchor")
durations = st.integers(0, 80 * MS)


class AnyDevice(RuleBasedStateMachine):
    """Submissions, polls, idleness, stumbles and faults in any order; nothing raises and everything is accounted for."""

    def __init__(self) -> None:
        super().__init__()
        self.device = FakeDevice()
        self.tracker: ExecutionTracker[FakeEvent] = ExecutionTracker(
            self.device, TrackerSettings(pairs=PAIRS, age_max_ns=AGE_MAX_NS), self.device.clock_ns
        )
        self.submitted = 0
        self.given: list[int] = []

    @initialize(anchored=st.booleans())
    def anchor(self, anchored: bool) -> None:
        if anchored:
            self.poll()

    @rule(duration_ns=durations, launch_ns=st.integers(0, MS), stream=st.sampled_from(("main", "main", "side")))
    def submit(self, duration_ns: int, launch_ns: int, stream: str) -> None:
        self.device.stream = stream
        self.submitted += not self.device.capturing or "available" in self.device.faults
        with self.tracker.begin("decode", GraphKind.PLAIN_DECODE):
            self.device.run(duration_ns, launch_ns)

    @rule()
    def submit_in_vain(self) -> None:
        self.submitted += not self.device.capturing or "available" in self.device.faults
        self.tracker.abandon(self.tracker.begin("decode", GraphKind.PLAIN_DECODE))

    @rule(duration_ns=st.one_of(durations, st.just(2 * AGE_MAX_NS)))
    def pass_time(self, duration_ns: int) -> None:
        self.device.now_ns += duration_ns

    @rule()
    def poll(self) -> None:
        for pair, times in self.tracker.completed():
            self.take(pair, times)

    @rule(until=st.integers(0, 50))
    def poll_some(self, until: int) -> None:
        for pair, times in self.tracker.completed(until):
            assert pair.sequence <= until
            self.take(pair, times)

    @rule()
    def idle(self) -> None:
        self.tracker.idle()

    @rule(method=st.sampled_from(FALLIBLE))
    def break_down(self, method: str) -> None:
        self.device.faults ^= {method}

    @rule(late_ns=durations, losing=st.booleans(), capturing=st.booleans())
    def misbehave(self, late_ns: int, losing: bool, capturing: bool) -> None:
        self.device.late_ns, self.device.losing, self.device.capturing = late_ns, losing, capturing

    @rule()
    def behave(self) -> None:
        device = self.device
        device.faults, device.late_ns, device.losing, device.capturing = set(), 0, False, False

    def take(self, pair: EventPair[FakeEvent], times: Times) -> None:
        assert not self.given or pair.sequence > self.given[-1]
        self.given.append(pair.sequence)
        assert 0 <= times.gpu_time_ns <= times.wall_time_ns
        assert times.submitted_ns <= times.observed_ns <= self.device.now_ns
        assert pair.queue_depth is None or 0 <= pair.queue_depth <= PAIRS

    @invariant()
    def nothing_is_unaccounted_for(self) -> None:
        lost = sum(self.tracker.losses.values())
        assert len(self.given) + lost <= self.submitted <= len(self.given) + lost + PAIRS
        assert self.device.made == 2 * PAIRS + 2

    def teardown(self) -> None:
        """Once all is well again nothing is stuck: what is in flight ends or is given up, and every pair serves again."""
        self.behave()
        self.device.now_ns += 3 * AGE_MAX_NS
        self.poll()
        assert self.tracker.in_flight == 0
        assert len(self.given) + sum(self.tracker.losses.values()) == self.submitted
        served = [self.tracker.begin("decode", GraphKind.PLAIN_DECODE) for _ in range(PAIRS - 1)]
        assert all(pair.measured for pair in served)
        assert len({id(pair) for pair in served}) == PAIRS - 1


AnyDevice.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestAnyDevice = AnyDevice.TestCase

steps = st.tuples(durations, durations, st.booleans())


@given(st.lists(steps, min_size=1, max_size=40), st.integers(1, 3))
@settings(deadline=None)
def test_on_a_healthy_device_the_walls_add_up_to_the_time_it_was_not_idle(
    script: list[tuple[int, int, bool]], in_flight_max: int
) -> None:
    """Every nanosecond from the first submission to the last end belongs to one execution, idle stretches aside."""
    device = FakeDevice()
    tracker: ExecutionTracker[FakeEvent] = ExecutionTracker(device, clock_ns=device.clock_ns)
    measured: list[tuple[Any, Times]] = []
    busy_since_ns, not_idle_ns = device.now_ns, 0

    def poll() -> None:
        measured.extend(((pair.queue_depth, pair.after_idle), times) for pair, times in tracker.completed())

    poll()
    for number, (gpu_ns, host_ns, idles) in enumerate(script):
        if idles or not number:
            device.wait()
            poll()
            not_idle_ns += device.free_ns[0] - busy_since_ns if number else 0
            tracker.idle()
            device.now_ns += host_ns
            busy_since_ns = device.now_ns
        else:
            while tracker.in_flight >= in_flight_max:
                device.now_ns += 1 * MS
                poll()
            device.now_ns += host_ns
        queued = device.free_ns[0] > device.now_ns
        with tracker.begin("decode", GraphKind.PLAIN_DECODE) as pair:
            device.run(gpu_ns)
        assert (pair.queue_depth or 0) > 0 or not queued
    device.wait()
    poll()
    not_idle_ns += device.free_ns[0] - busy_since_ns
    assert [times.gpu_time_ns for _, times in measured] == [gpu_ns for gpu_ns, *_ in script]
    assert sum(times.wall_time_ns for _, times in measured) == not_idle_ns
    assert not any(tracker.losses.values())
