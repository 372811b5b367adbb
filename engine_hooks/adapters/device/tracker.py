"""The state machine: from event pairs to times of executions."""

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple

from engine_hooks.adapters.device.errors import DeviceSettingError
from engine_hooks.adapters.device.event_source import EventSource, EventT
from engine_hooks.adapters.device.host_clock import HostClock
from engine_hooks.adapters.device.losses import DeviceLoss, Losses
from engine_hooks.adapters.device.pairs import EventPair, Unmeasured
from engine_hooks.contract.names import GraphKind


@dataclass(frozen=True)
class TrackerSettings:
    """Bounds of a tracker."""

    pairs: int = 64
    """Event pairs: executions in flight, or finished and not yet polled, at most. One of them is kept back. 2 or more."""
    age_max_ns: int = 60_000_000_000
    """An execution that has not ended by then never will: it is counted as lost."""
    anchor_interval_ns: int = 2_000_000_000
    """Time between two anchors of device time to host time."""

    def __post_init__(self) -> None:
        for name, lowest in (("pairs", 2), ("age_max_ns", 1), ("anchor_interval_ns", 1)):
            if getattr(self, name) < lowest:
                raise DeviceSettingError(f"{name} must be at least {lowest}, not {getattr(self, name)}")


class Times(NamedTuple):
    """Times of one finished execution, as the contract defines them. Nanoseconds; instants on the host's clock."""

    submitted_ns: int
    observed_ns: int
    gpu_time_ns: int
    wall_time_ns: int
    gpu_start_offset_ns: int | None
    """Device start - submission; `None` while there is no anchor."""


class ExecutionTracker(Generic[EventT]):
    """Times the executions of one device from event pairs, polled and never waited for.

    One thread at a time. `begin` and `end` stand around a submission: they record two events
    out of the pool and make no objects. `completed` gives what has ended, in the order of
    submission; an execution that ended before an earlier one waits for it. No method raises
    for the device's sake, and none waits for it: what goes wrong is counted in `losses`.
    """

    def __init__(
        self,
        source: EventSource[EventT],
        settings: TrackerSettings | None = None,
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        """Makes every event there will ever be, and takes the first anchor. Not while a graph is being captured.

        Raises whatever the source raises when it makes events: a device that is not there.
        """
        self.settings = settings or TrackerSettings()
        self._source = source
        self._clock_ns = clock_ns
        self._losses = Losses()
        self._unmeasured = Unmeasured(self)
        self._free = [EventPair(self, source.new_event(), source.new_event()) for _ in range(self.settings.pairs)]
        self._in_flight: deque[EventPair[EventT]] = deque()
        self._observed: deque[EventPair[EventT]] = deque()
        self._host_clock = HostClock(source, self.settings.anchor_interval_ns)
        if self._can_ask():
            self._host_clock.renew(clock_ns())
        self._sequence = 0
        self._after_idle = True
        self._frontier: EventPair[EventT] | None = None
        """The execution whose end freed the device last; its pair is kept until another's is later."""
        self._frontier_sequence = -1
        """Of the last execution that was timed. The one before a next one is known only if no sequence lies between."""
        self._lost_in_flight = -1
        """The last sequence that was lost when submitted; it may still be in flight until a later one has ended."""

    @property
    def losses(self) -> Mapping[DeviceLoss, int]:
        """How many executions were not measured, by reason."""
        return self._losses.by_reason()

    @property
    def in_flight(self) -> int:
        """Measured executions that were submitted and not yet seen to end."""
        return len(self._in_flight)

    @property
    def anchor_uncertainty_ns(self) -> int | None:
        """How far off host times of device events may be; `None` without an anchor."""
        return self._host_clock.uncertainty_ns

    def idle(self) -> None:
        """The engine has run out of work: no interval of the next execution spans the time until then."""
        self._after_idle = True

    def begin(
        self, graph_name: str, graph_kind: GraphKind, fields: Mapping[str, Any] | None = None
    ) -> EventPair[EventT]:
        """Call right before a submission; `end` or `abandon` what it gives right after."""
        source = self._source
        try:
            if not source.available():
                return self._unmeasured  # nothing is executed: it is being captured
        except Exception as error:
            return self._lost_at_submission(DeviceLoss.SOURCE_FAILED, error)
        self._observe()
        if not self._free:
            return self._lost_at_submission(DeviceLoss.POOL_EXHAUSTED)
        pair = self._free.pop()
        pair.graph_name, pair.graph_kind, pair.fields = graph_name, graph_kind, fields
        pair.queue_depth = None if self._lost_in_flight >= 0 else len(self._in_flight)
        pair.submitted_ns = self._clock_ns()
        try:
            pair.stream = source.current_stream()
            source.record(pair.start, pair.stream)
        except Exception as error:
            self._release(pair)
            return self._lost_at_submission(DeviceLoss.SOURCE_FAILED, error)
        pair.sequence = self._next_sequence()
        pair.after_idle, self._after_idle = self._after_idle, False
        return pair

    def end(self, pair: EventPair[EventT]) -> None:
        """The submission was made."""
        if not pair.measured:
            return
        try:
            self._source.record(pair.end, pair.stream)
        except Exception as error:
            self._lose(pair, DeviceLoss.SOURCE_FAILED, error)
            self._lost_in_flight = pair.sequence
        else:
            self._in_flight.append(pair)

    def abandon(self, pair: EventPair[EventT]) -> None:
        """The submission raised: nothing, or not all of it, reached the device."""
        if pair.measured:
            self._lose(pair, DeviceLoss.LAUNCH_FAILED)
            self._lost_in_flight = pair.sequence

    def completed(self, until: int | None = None) -> Iterator[tuple[EventPair[EventT], Times]]:
        """What has ended and was not given before, in the order of submission.

        Args:
            until: A sequence; later executions wait for another call. `None`: all.

        A pair is free for another execution when the next one is asked for. Renews the anchor, if it is due.
        """
        if not self._can_ask():
            return
        now_ns = self._clock_ns()
        if now_ns >= self._host_clock.due_ns:
            self._host_clock.renew(now_ns)
        self._observe()
        while self._observed and (until is None or self._observed[0].sequence <= until):
            pair = self._observed.popleft()
            try:
                times = self._times(pair)
            except Exception as error:
                self._lose(pair, DeviceLoss.SOURCE_FAILED, error)
                continue
            try:
                yield pair, times
            finally:
                if pair is not self._frontier:
                    self._release(pair)

    def _can_ask(self) -> bool:
        try:
            return self._source.available()
        except Exception:  # the next submission counts it
            return False

    def _observe(self) -> None:
        """Takes out of flight, from the oldest on, what has ended."""
        in_flight = self._in_flight
        while in_flight:
            pair = in_flight[0]
            try:
                is_done = self._source.done(pair.end)
            except Exception as error:
                self._lose(in_flight.popleft(), DeviceLoss.SOURCE_FAILED, error)
                continue
            now_ns = self._clock_ns()
            if is_done:
                pair.observed_ns = now_ns
                if pair.sequence > self._lost_in_flight:
                    self._lost_in_flight = -1  # what was lost before it has ended too
                self._observed.append(in_flight.popleft())
            elif now_ns - pair.submitted_ns > self.settings.age_max_ns:
                self._lost_in_flight = max(self._lost_in_flight, pair.sequence)
                self._lose(in_flight.popleft(), DeviceLoss.NEVER_COMPLETED)
            else:
                return

    def _times(self, pair: EventPair[EventT]) -> Times:
        """The contract's times, and the device's new frontier."""
        elapsed_ns = self._source.elapsed_ns
        lasted_ns = max(elapsed_ns(pair.start, pair.end), 0)
        gpu_time_ns = self._source.run_ns(pair.start, pair.end, lasted_ns)
        offset_ns = self._start_offset_ns(pair)
        frontier, is_next = self._frontier, pair.sequence == self._frontier_sequence + 1
        ends_later = True
        if frontier is None or pair.after_idle or not is_next:
            # The device's idle time before it is not known, or none of its own: of a drained one, only from its
            # submission on; of a queued one nothing.
            waited_ns = offset_ns if pair.after_idle or pair.queue_depth == 0 else 0
            idle_gap_ns = max(waited_ns or 0, 0)
        else:
            start_after_ns = elapsed_ns(frontier.end, pair.start)
            ends_later = start_after_ns + lasted_ns >= 0
            idle_gap_ns = max(start_after_ns, 0)
        self._frontier_sequence = pair.sequence
        if ends_later:
            self._frontier = pair
            if frontier is not None:
                self._release(frontier)
        return Times(pair.submitted_ns, pair.observed_ns, gpu_time_ns, idle_gap_ns + lasted_ns, offset_ns)

    def _start_offset_ns(self, pair: EventPair[EventT]) -> int | None:
        try:
            host_ns = self._host_clock.host_ns(pair.start)
        except Exception:  # the execution itself was measured: only its place is not known
            host_ns = None
        if host_ns is None:
            return None
        offset_ns = host_ns - pair.submitted_ns
        uncertainty_ns = self._host_clock.uncertainty_ns or 0
        # A device cannot start before the submission: within the anchor's uncertainty it started at once.
        return 0 if -uncertainty_ns <= offset_ns < 0 else offset_ns

    def _next_sequence(self) -> int:
        self._sequence += 1
        return self._sequence - 1

    def _lost_at_submission(self, reason: DeviceLoss, error: BaseException | None = None) -> EventPair[EventT]:
        self._losses.count(reason, error)
        self._lost_in_flight = self._next_sequence()
        self._after_idle = False  # the next execution comes after this one
        return self._unmeasured

    def _lose(self, pair: EventPair[EventT], reason: DeviceLoss, error: BaseException | None = None) -> None:
        self._losses.count(reason, error)
        self._release(pair)

    def _release(self, pair: EventPair[EventT]) -> None:
        pair.fields = None
        self._free.append(pair)
