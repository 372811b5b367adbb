"""Executions timed by events: depth, gaps, idle, anchors, and a device that is late, out of order or broken."""

import gc
import logging

import pytest

from engine_hooks.adapters.device.errors import DeviceSettingError
from engine_hooks.adapters.device.losses import DeviceLoss
from engine_hooks.adapters.device.pairs import EventPair
from engine_hooks.adapters.device.tracker import ExecutionTracker, Times, TrackerSettings
from engine_hooks.contract.names import GraphKind
from tests.fixtures.fake_device import MS, DeviceFaultError, FakeDevice, FakeEvent

US = 1_000


def tracker_on(device: FakeDevice, **settings: int) -> ExecutionTracker[FakeEvent]:
    return ExecutionTracker(device, TrackerSettings(**settings), device.clock_ns)


def submit(
    tracker: ExecutionTracker[FakeEvent], device: FakeDevice, duration_ns: int, launch_ns: int = 0
) -> EventPair[FakeEvent]:
    with tracker.begin("decode", GraphKind.PLAIN_DECODE) as pair:
        device.run(duration_ns, launch_ns)
    return pair


def completed(tracker: ExecutionTracker[FakeEvent]) -> list[tuple[int, int | None, bool, Times]]:
    """Sequence, depth, after idle and times of what has ended."""
    return [(pair.sequence, pair.queue_depth, pair.after_idle, times) for pair, times in tracker.completed()]


def lost(tracker: ExecutionTracker[FakeEvent]) -> dict[str, int]:
    return {str(reason): count for reason, count in tracker.losses.items() if count}


def test_two_in_flight() -> None:
    device = FakeDevice()
    tracker = tracker_on(device)
    completed(tracker)  # takes the first anchor
    began_ns = device.now_ns
    submit(tracker, device, 5 * MS)
    device.now_ns += 1 * MS
    submit(tracker, device, 7 * MS)
    assert tracker.in_flight == 2
    device.now_ns = began_ns + 6 * MS
    assert completed(tracker) == [(0, 0, True, Times(began_ns, began_ns + 6 * MS, 5 * MS, 5 * MS, 0))]
    submit(tracker, device, 2 * MS)
    device.wait()
    queued, behind = completed(tracker)
    assert queued == (1, 1, False, Times(began_ns + MS, device.now_ns, 7 * MS, 7 * MS, 4 * MS))
    assert behind == (2, 1, False, Times(began_ns + 6 * MS, device.now_ns, 2 * MS, 2 * MS, 6 * MS))
    assert not lost(tracker)


def test_a_late_host_makes_a_gap_and_launch_latency_is_inside_a_drained_interval() -> None:
    device = FakeDevice()
    tracker = tracker_on(device)
    completed(tracker)
    submit(tracker, device, 5 * MS)
    device.wait()
    device.now_ns += 60 * MS  # the host stumbles
    submit(tracker, device, 5 * MS, launch_ns=40 * US)
    device.wait()
    _, (_, depth, after_idle, times) = completed(tracker)
    assert (depth, after_idle) == (0, False)
    assert times.gpu_time_ns == 5 * MS + 40 * US
    assert times.wall_time_ns == 65 * MS + 40 * US
    assert times.gpu_start_offset_ns == 0


def test_no_interval_spans_idle() -> None:
    device = FakeDevice()
    tracker = tracker_on(device)
    completed(tracker)
    submit(tracker, device, 5 * MS)
    device.wait()
    completed(tracker)
    tracker.idle()
    device.now_ns += 3_600_000 * MS
    submit(tracker, device, 5 * MS)
    submit(tracker, device, 5 * MS)
    device.wait()
    first, second = completed(tracker)
    assert (first[2], first[3].wall_time_ns) == (True, 5 * MS)
    assert (second[2], second[3].wall_time_ns) == (False, 5 * MS)


def test_without_an_anchor_only_what_lies_between_host_and_device_is_missing() -> None:
    device = FakeDevice(faults={"anchor"})
    tracker = tracker_on(device)
    submit(tracker, device, 5 * MS)
    device.wait()
    ((_, _, after_idle, times),) = completed(tracker)
    assert after_idle
    assert (times.gpu_time_ns, times.wall_time_ns, times.gpu_start_offset_ns) == (5 * MS, 5 * MS, None)
    assert tracker.anchor_uncertainty_ns is None
    assert not lost(tracker)


def test_what_ends_out_of_order_waits_for_what_came_before() -> None:
    device = FakeDevice()
    tracker = tracker_on(device)
    completed(tracker)
    submit(tracker, device, 50 * MS)
    device.stream = "another"
    submit(tracker, device, 5 * MS)
    device.now_ns += 10 * MS
    assert completed(tracker) == []
    assert tracker.in_flight == 2
    device.wait()
    slow, quick = completed(tracker)
    assert (slow[0], quick[0]) == (0, 1)
    # The device was never free between them: the second held nothing up beyond its own time.
    assert (quick[3].gpu_time_ns, quick[3].wall_time_ns) == (5 * MS, 5 * MS)
    device.stream = 0
    submit(tracker, device, 5 * MS)
    device.wait()
    ((_, _, _, times),) = completed(tracker)
    assert times.wall_time_ns == 5 * MS  # counted from the later of the two ends


def test_late_events_are_observed_late() -> None:
    device = FakeDevice()
    tracker = tracker_on(device)
    completed(tracker)
    device.late_ns = 500 * MS
    pair = submit(tracker, device, 5 * MS)
    device.wait()
    assert completed(tracker) == []
    device.now_ns = pair.submitted_ns + 505 * MS
    ((_, _, _, times),) = completed(tracker)
    assert times.observed_ns - times.submitted_ns == 505 * MS


def test_what_never_ends_is_counted_and_the_rest_goes_on() -> None:
    device = FakeDevice()
    tracker = tracker_on(device, age_max_ns=1_000 * MS)
    completed(tracker)
    submit(tracker, device, 5 * MS)
    device.losing = True
    submit(tracker, device, 5 * MS)
    device.losing = False
    submit(tracker, device, 5 * MS)
    device.wait()
    assert [sequence for sequence, *_ in completed(tracker)] == [0]
    device.now_ns += 1_001 * MS
    ((sequence, _, _, times),) = completed(tracker)
    assert sequence == 2
    assert times.wall_time_ns == 5 * MS  # when the lost one ended nobody knows: no gap is made up
    assert lost(tracker) == {"never_completed": 1}
    submit(tracker, device, 5 * MS)
    device.wait()
    device.now_ns += 3 * MS
    submit(tracker, device, 5 * MS)
    device.wait()
    assert [(depth, times.wall_time_ns // MS) for _, depth, _, times in completed(tracker)] == [(0, 1_006), (0, 8)]


def test_an_exhausted_pool_is_counted_and_never_waits() -> None:
    device = FakeDevice()
    tracker = tracker_on(device, pairs=3)
    completed(tracker)
    pairs = [submit(tracker, device, 5 * MS) for _ in range(5)]
    assert [pair.measured for pair in pairs] == [True, True, True, False, False]
    assert device.made == 2 * 3 + 2
    assert lost(tracker) == {"pool_exhausted": 2}
    device.now_ns += 16 * MS
    assert [sequence for sequence, *_ in completed(tracker)] == [0, 1, 2]
    after = submit(tracker, device, 5 * MS)
    assert after.sequence == 5
    assert after.queue_depth is None  # the two that were lost may still be in flight, and are
    device.wait()
    ((_, _, _, times),) = completed(tracker)
    assert times.wall_time_ns == times.gpu_time_ns == 5 * MS
    assert submit(tracker, device, 5 * MS).queue_depth == 0


@pytest.mark.parametrize("method", ["available", "current_stream", "record", "done", "elapsed_ns"])
def test_a_broken_device_does_not_reach_the_engine(method: str, caplog: pytest.LogCaptureFixture) -> None:
    device = FakeDevice()
    tracker = tracker_on(device)
    completed(tracker)
    device.faults.add(method)
    with caplog.at_level(logging.WARNING):
        for _ in range(100):
            submit(tracker, device, 5 * MS)
            device.wait()
            assert completed(tracker) == []
    assert lost(tracker) == {"source_failed": 100}
    assert len(caplog.records) == 1
    device.faults.clear()
    pair = submit(tracker, device, 5 * MS)
    device.wait()
    assert [sequence for sequence, *_ in completed(tracker)] == [pair.sequence] == [100]


def test_a_device_that_fails_at_the_end_event_loses_that_execution_alone() -> None:
    device = FakeDevice()
    tracker = tracker_on(device)
    completed(tracker)
    pair = tracker.begin("decode", GraphKind.PLAIN_DECODE)
    device.run(5 * MS)
    device.faults.add("record")
    tracker.end(pair)
    device.faults.clear()
    after = submit(tracker, device, 5 * MS)
    assert after.queue_depth is None
    device.wait()
    assert [sequence for sequence, *_ in completed(tracker)] == [1]
    assert lost(tracker) == {"source_failed": 1}


def test_a_submission_that_raises_is_the_engines_to_see() -> None:
    device = FakeDevice()
    tracker = tracker_on(device)
    with pytest.raises(DeviceFaultError), tracker.begin("decode", GraphKind.PLAIN_DECODE):
        raise DeviceFaultError("out of memory")
    assert lost(tracker) == {"launch_failed": 1}
    assert tracker.in_flight == 0
    assert submit(tracker, device, 5 * MS).sequence == 1


def test_nothing_is_touched_while_a_graph_is_captured() -> None:
    device = FakeDevice()
    tracker = tracker_on(device)
    submit(tracker, device, 5 * MS)
    device.capturing = True
    assert not submit(tracker, device, 0).measured
    assert completed(tracker) == []
    device.capturing = False
    device.wait()
    assert [sequence for sequence, *_ in completed(tracker)] == [0]
    assert submit(tracker, device, 5 * MS).sequence == 1  # a capture executes nothing: no gap
    assert not lost(tracker)


def test_starts_are_placed_to_the_microsecond_hours_later() -> None:
    """Ten minutes of rounds; then the same without renewal, which shows what float32 and drift would do."""

    def worst_ns(anchor_interval_ns: int) -> tuple[int, int]:
        device = FakeDevice(float32_ms=True, drift_ppm=10)
        tracker = tracker_on(device, anchor_interval_ns=anchor_interval_ns)
        completed(tracker)
        offsets_ns = []
        for _ in range(3_600):
            device.now_ns += 995 * MS + 777
            submit(tracker, device, 5 * MS)
            device.wait()
            offsets_ns += [times.gpu_start_offset_ns or 0 for *_, times in completed(tracker)]
        return max(map(abs, offsets_ns)), device.anchors

    renewed_ns, anchors = worst_ns(2_000 * MS)
    assert renewed_ns < 25 * US
    assert anchors == pytest.approx(1_800, rel=0.4)
    assert worst_ns(10**15)[0] > 10 * MS


def test_a_start_within_the_anchors_uncertainty_of_its_submission_is_at_once() -> None:
    device = FakeDevice(anchor_lag_ns=30 * US)
    tracker = tracker_on(device)
    completed(tracker)
    assert tracker.anchor_uncertainty_ns == 30 * US
    submit(tracker, device, 5 * MS)
    device.wait()
    ((*_, times),) = completed(tracker)
    assert times.gpu_start_offset_ns == 0


def test_an_uncertain_anchor_replaces_none_but_no_better_one() -> None:
    device = FakeDevice(anchor_lag_ns=5 * MS)
    tracker = tracker_on(device, anchor_interval_ns=1)
    completed(tracker)
    assert tracker.anchor_uncertainty_ns == 5 * MS
    device.anchor_lag_ns = 10 * US
    device.now_ns += 200 * MS
    completed(tracker)
    assert tracker.anchor_uncertainty_ns == 10 * US
    device.anchor_lag_ns = 5 * MS
    device.now_ns += 200 * MS
    completed(tracker)
    assert tracker.anchor_uncertainty_ns == 10 * US


def test_submissions_make_no_objects() -> None:
    device = FakeDevice()
    tracker = tracker_on(device, pairs=600)
    submit(tracker, device, MS)
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(500):
        tracker.end(tracker.begin("decode", GraphKind.PLAIN_DECODE))
    assert len(gc.get_objects()) - before <= 1
    assert device.made == 2 * 600 + 2


def test_a_poll_that_is_left_half_way_loses_no_pair() -> None:
    device = FakeDevice()
    tracker = tracker_on(device, pairs=3)
    for _ in range(20):
        submit(tracker, device, MS)
        submit(tracker, device, MS)
        device.wait()
        for _ in tracker.completed():
            break
        assert len(completed(tracker)) == 1
    assert not lost(tracker)


@pytest.mark.parametrize("settings", [{"pairs": 1}, {"age_max_ns": 0}, {"anchor_interval_ns": 0}])
def test_bounds_out_of_range_are_refused(settings: dict[str, int]) -> None:
    with pytest.raises(DeviceSettingError, match="must be at least"):
        TrackerSettings(**settings)


def test_losses_are_named() -> None:
    assert set(ExecutionTracker(FakeDevice()).losses) == set(DeviceLoss)
