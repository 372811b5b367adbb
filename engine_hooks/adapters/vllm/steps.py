"""The steps of one engine core: what is in flight, when it was complete, and the record that comes of it.

Instants are the process's monotonic clock in ns. Steps complete in the order of submission.
"""

from collections import deque
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from engine_hooks.adapters.vllm.batches import drafts_scheduled, feedback_of, graph_name_without_graph, kind_of
from engine_hooks.contract.execution import GraphExecution
from engine_hooks.contract.names import GpuTimeSource, GraphKind
from engine_hooks.recorder.clock import Calendar

DEVICE_WAIT_NS: Final = 5_000_000_000
"""How long a finished step waits for its device times before the host's stand in."""


class Step:
    """One submission: from `Scheduler.schedule` to `Scheduler.update_from_output`."""

    __slots__ = (
        "after_idle",
        "awaits_device",
        "budget",
        "device_ns",
        "estimate_ns",
        "graph",
        "output",
        "queue_depth",
        "sequence",
        "submitted_ns",
    )

    def __init__(self, output: Any, sequence: int, submitted_ns: int, queue_depth: int, *, after_idle: bool) -> None:
        self.output = output
        self.sequence = sequence
        self.submitted_ns = submitted_ns
        self.queue_depth = queue_depth
        self.after_idle = after_idle
        self.graph = ""
        """The CUDA graph's name; empty where none was replayed, or not seen in this process."""
        self.budget: int | None = None
        """Positions that the graph, or vLLM's adaptive verification, makes room for."""
        self.estimate_ns: int | None = None
        self.awaits_device = False
        """Events stand around its work on the device, and have not been seen to fire."""
        self.device_ns: tuple[int, int] | None = None
        """Start and end on the device, by the host's monotonic clock."""


class Results(NamedTuple):
    """What came of a step."""

    completed_ns: int
    tokens_drafted: int
    tokens_accepted: int
    tokens_emitted: int


class Steps:
    """The steps of one scheduler. One thread calls it, the engine core's.

    `queued` is whether the engine core has a batch queue, `speculates` whether it has a drafter.
    """

    def __init__(
        self,
        record: Callable[[GraphExecution], None],
        *,
        queued: bool,
        speculates: bool,
        calendar: Calendar | None = None,
    ) -> None:
        self.queued = queued
        self.speculates = speculates
        self.in_flight: deque[Step] = deque()
        self.abandoned = 0
        """Steps that were submitted and never came back: the engine's own failures."""
        self._record = record
        self._calendar = calendar or Calendar()
        self._idle = True
        self._sequence = 0
        self._unsettled: deque[tuple[Step, Results]] = deque()
        self._last_end_ns = 0

    def submit(self, output: Any, submitted_ns: int) -> Step | None:
        """A step that was just scheduled; `None` for an empty one, which runs nothing."""
        if not output.total_num_scheduled_tokens:
            self.idle()
            return None
        step = Step(output, self._sequence, submitted_ns, len(self.in_flight), after_idle=self._idle)
        # What waits for its device times is placed as what came before it was.
        self._calendar.look(submitted_ns, idle=self._idle and not self._unsettled)
        self._idle = False
        self._sequence += 1
        self.in_flight.append(step)
        return step

    def idle(self) -> None:
        """The engine has no work that it could run: the next step starts a stretch of its own."""
        if not self.in_flight:
            self._idle = True

    def abandon(self) -> None:
        """Whatever is in flight will not come back: the engine core says that its queue is empty."""
        if self.in_flight:
            self.abandoned += len(self.in_flight)
            self.in_flight.clear()
            self._idle = True

    def taken(self, output: Any) -> Step | None:
        """The step of this `SchedulerOutput`, no longer in flight; `None` if it is not known."""
        for step in self.in_flight:
            if step.output is output:
                self.in_flight.remove(step)
                return step
        return None

    def finish(self, step: Step, results: Results) -> None:
        """A step whose results have been taken in. It is recorded as soon as its device times are known."""
        self._unsettled.append((step, results))
        self.settle(results.completed_ns)

    def settle(self, now_ns: int, *, last: bool = False) -> None:
        """Records finished steps, in order, up to the first whose device times are still to come; at `last` all."""
        while self._unsettled:
            step, results = self._unsettled[0]
            if step.awaits_device and not last and now_ns - results.completed_ns < DEVICE_WAIT_NS:
                return
            self._unsettled.popleft()
            self._record(self._execution(step, results))

    def _execution(self, step: Step, results: Results) -> GraphExecution:
        free_ns = step.submitted_ns if step.after_idle else self._last_end_ns
        start_ns, end_ns = step.device_ns or (max(step.submitted_ns, free_ns), results.completed_ns)
        self._last_end_ns = end_ns
        source = GpuTimeSource.CUDA_EVENT if step.device_ns else GpuTimeSource.HOST
        output = step.output
        drafts = drafts_scheduled(output)
        kind = kind_of(output, drafts)
        tokens = output.total_num_scheduled_tokens
        feedback = feedback_of(output, kind, queued=self.queued, speculates=self.speculates)
        return GraphExecution(
            graph_name=step.graph or graph_name_without_graph(kind, tokens),
            graph_kind=kind,
            graph_sequence=step.sequence,
            graph_gpu_time_ns=max(end_ns - start_ns, 0),
            graph_wall_time_ns=max(end_ns - free_ns, 0),
            started_at=self._calendar.unix_of(step.submitted_ns),
            duration_ns=results.completed_ns - step.submitted_ns,
            graph_gpu_start_offset_ns=start_ns - step.submitted_ns,
            graph_gpu_time_source=source,
            graph_queue_depth=step.queue_depth,
            graph_after_idle=step.after_idle,
            graph_completion_feedback=feedback is not None,
            graph_completion_feedback_reason=feedback,
            batch_lanes=len(output.num_scheduled_tokens),
            batch_tokens_drafted=results.tokens_drafted,
            batch_tokens_accepted=results.tokens_accepted,
            batch_tokens_emitted=results.tokens_emitted,
            batch_verification_budget=(step.budget or tokens) if kind is GraphKind.SPECULATIVE else None,
            scheduler_cost_model="" if step.estimate_ns is None else COST_MODEL,
            scheduler_estimate_ns=step.estimate_ns,
            scheduler_estimate_gpu_ns=step.estimate_ns,
            scheduler_estimate_handoff_ns=None if step.estimate_ns is None else 0,
        )


COST_MODEL: Final = "vllm_adaptive_verification"
"""vLLM's own: medians of start-up replays by padded size, never updated; it charges no handoff."""
