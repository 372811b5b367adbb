"""The steps of one scheduler: what is in flight, when it was complete, and the record that comes of it.

Instants are the process's monotonic clock in ns. Steps complete in the order of submission.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from engine_hooks.adapters.sglang.device_times import StepTimer
from engine_hooks.adapters.sglang.step import DeviceTimes, Step, Submission
from engine_hooks.contract.execution import GraphExecution
from engine_hooks.contract.names import GpuTimeSource, GraphKind
from engine_hooks.recorder.clock import Calendar

DEVICE_WAIT_NS: Final = 5_000_000_000
"""How long a finished step waits for its device times before the host's stand in."""
IN_FLIGHT_MAX: Final = 64
UNSETTLED_MAX: Final = 256
COST_MODEL: Final = "sglang_dspark"
"""SGLang's own: step times profiled at start-up, by verified tokens."""


class Tokens(NamedTuple):
    """What came of a step."""

    drafted: int
    accepted: int
    emitted: int


class Steps:
    """The steps of one scheduler. One thread calls it, the scheduler's."""

    def __init__(
        self,
        record: Callable[[GraphExecution], None],
        timer: StepTimer | None = None,
        calendar: Calendar | None = None,
    ) -> None:
        self.in_flight: deque[Step] = deque()
        self.abandoned = 0
        """Steps whose results never came: the engine's own failures."""
        self._record = record
        self._timer = timer
        self._calendar = calendar or Calendar()
        self._sequence = 0
        self._unsettled: deque[tuple[Step, Tokens]] = deque()
        self._last_end_ns = 0

    def submit(self, submission: Submission) -> Step:
        """A step is about to be submitted."""
        if submission.after_idle:
            self.settle(submission.submitted_ns)
        # What waits for its device times is placed as what came before it was.
        self._calendar.look(submission.submitted_ns, idle=submission.after_idle and not self._unsettled)
        step = Step(submission, self._sequence)
        self._sequence += 1
        self.in_flight.append(step)
        if len(self.in_flight) > IN_FLIGHT_MAX:
            self._abandon(self.in_flight[0])
        return step

    @property
    def is_first(self) -> bool:
        """Whether nothing was submitted yet."""
        return self._sequence == 0

    def keep(self, results: Sequence[Any]) -> None:
        """The engine says which results it still waits for: other steps will not come back."""
        for step in list(self.in_flight):
            if not any(step.result is result for result in results):
                self._abandon(step)

    def of(self, result: Any) -> Step | None:
        """The step in flight of a result."""
        return next((step for step in self.in_flight if step.result is result), None)

    def finish(self, step: Step, tokens: Tokens, now_ns: int) -> None:
        """A step whose result was processed. It is recorded as soon as its device times are known."""
        self.in_flight.remove(step)
        step.completed_ns = step.completed_ns or now_ns
        step.result = None
        self._unsettled.append((step, tokens))
        self.settle(now_ns)

    def settle(self, now_ns: int, *, last: bool = False) -> None:
        """Records finished steps, in order, up to the first whose device times are still to come; at `last` all."""
        if self._timer is not None:
            self._timer.poll()
        while self._unsettled:
            step, tokens = self._unsettled[0]
            waits = step.timed and step.device is None and now_ns - step.completed_ns < DEVICE_WAIT_NS
            if waits and not last and len(self._unsettled) <= UNSETTLED_MAX:
                return
            self._unsettled.popleft()
            self._record(self._execution(step, tokens))

    def _abandon(self, step: Step) -> None:
        self.in_flight.remove(step)
        self.abandoned += 1

    def _execution(self, step: Step, tokens: Tokens) -> GraphExecution:
        known = step.submission
        times = step.device or self._host_times(step)
        offset_ns = times.start_offset_ns
        ended_ns = step.completed_ns if offset_ns is None else known.submitted_ns + offset_ns + times.gpu_time_ns
        self._last_end_ns = ended_ns
        speculates = known.kind is GraphKind.SPECULATIVE
        return GraphExecution(
            graph_name=step.graph or known.eager_name,
            graph_kind=known.kind,
            graph_sequence=step.sequence,
            graph_gpu_time_ns=times.gpu_time_ns,
            graph_wall_time_ns=times.wall_time_ns,
            started_at=self._calendar.unix_of(known.submitted_ns),
            duration_ns=max(step.completed_ns, ended_ns) - known.submitted_ns,
            graph_gpu_start_offset_ns=offset_ns,
            graph_gpu_time_source=times.source,
            graph_queue_depth=known.queue_depth,
            graph_after_idle=known.after_idle,
            graph_completion_feedback=known.feedback is not None,
            graph_completion_feedback_reason=known.feedback,
            batch_lanes=known.lanes,
            batch_tokens_drafted=tokens.drafted,
            batch_tokens_accepted=tokens.accepted,
            batch_tokens_emitted=tokens.emitted,
            batch_verification_budget=step.budget if speculates else None,
            scheduler_cost_model="" if step.estimate_ns is None else COST_MODEL,
            scheduler_estimate_ns=step.estimate_ns,
        )

    def _host_times(self, step: Step) -> DeviceTimes:
        """Without a device's clock: from when it could start to when its result was seen."""
        submitted_ns = step.submission.submitted_ns
        free_ns = submitted_ns if step.submission.after_idle else self._last_end_ns
        start_ns = max(submitted_ns, free_ns)
        gpu_time_ns = max(step.completed_ns - start_ns, 0)
        return DeviceTimes(
            gpu_time_ns, start_ns + gpu_time_ns - (free_ns or start_ns), start_ns - submitted_ns, GpuTimeSource.HOST
        )
