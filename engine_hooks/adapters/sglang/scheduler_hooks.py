"""The hooks on the scheduler: which steps there are, and when and how each ended."""

import logging
import time
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from engine_hooks.adapters.guarded import argument
from engine_hooks.adapters.sglang.batches import drafted_and_accepted, eager_name, feedback_of, kind_of, tokens_out
from engine_hooks.adapters.sglang.graph_hooks import GraphHooks
from engine_hooks.adapters.sglang.step import Step, Submission
from engine_hooks.adapters.sglang.steps import Steps, Tokens

logger = logging.getLogger(__name__)

SHUTDOWN_S: Final = 2.0
"""How long an engine that ends waits for the collector to take what is left."""


class Run(NamedTuple):
    """What records one scheduler."""

    steps: Steps
    stop: Callable[[], object]
    """Hands everything over and ends."""


class _Processing(NamedTuple):
    """What was seen before a result was processed."""

    step: Step
    batch: Any
    result: Any
    tokens_out: int


class SchedulerHooks:
    """What is done around the methods of `Scheduler` and its result processor. Called by the scheduler's thread."""

    def __init__(
        self,
        graphs: GraphHooks,
        open_run: Callable[[Any], Run | None],
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        """Sets up.

        Args:
            graphs: Is told which step is being submitted.
            open_run: Given a scheduler that was made: what records it, or `None` where another rank is recorded.
            clock_ns: The process's monotonic clock.
        """
        self._graphs = graphs
        self._open_run = open_run
        self._clock_ns = clock_ns
        self.run: Run | None = None

    def created(self, scheduler: Any, _seen: Any, _result: Any) -> None:
        """After `Scheduler.__init__`: models are loaded, graphs are captured."""
        self.run = self._open_run(scheduler)

    def submitting(self, scheduler: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> Step | None:
        """Before `Scheduler.run_batch`."""
        self._graphs.begin(None)
        batch = argument(arguments, named, 0, "batch")
        kind = kind_of(batch)
        if self.run is None or kind is None:
            return None
        steps, overlaps = self.run.steps, bool(scheduler.enable_overlap)
        depth = _depth(scheduler, steps, overlaps=overlaps)
        step = steps.submit(
            Submission(
                kind=kind,
                eager_name=eager_name(batch, kind),
                lanes=batch.batch_size(),
                feedback=feedback_of(batch, kind, overlaps=overlaps),
                submitted_ns=self._clock_ns(),
                queue_depth=depth,
                after_idle=not depth and (steps.is_first or bool(getattr(scheduler, "_sched_idled", False))),
            )
        )
        self._graphs.begin(step)
        return step

    def submitted(self, _scheduler: Any, step: Step | None, result: Any) -> None:
        """After it: the step's result will come back by its identity."""
        if step is not None:
            step.result = result
            self._graphs.end(step)

    def processing(self, _scheduler: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> _Processing | None:
        """Before `Scheduler.process_batch_result`."""
        if self.run is None:
            return None
        batch, result = argument(arguments, named, 0, "batch"), argument(arguments, named, 1, "result")
        step = self.run.steps.of(result)
        return None if step is None else _Processing(step, batch, result, tokens_out(batch))

    def observed(self, _processor: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        """Before what follows the wait for a result: it is on the host."""
        step = self.run.steps.of(argument(arguments, named, 1, "result")) if self.run is not None else None
        if step is not None and not step.completed_ns:
            step.completed_ns = self._clock_ns()

    def processed(self, _scheduler: Any, seen: _Processing | None, _result: Any) -> None:
        """After `process_batch_result`: tokens are counted and given out."""
        if seen is None or self.run is None:
            return
        step, lanes = seen.step, seen.step.submission.lanes
        drafted, accepted = drafted_and_accepted(seen.result, lanes)
        if drafted and step.budget is None:
            step.budget = seen.result.speculative_num_draft_tokens * lanes
        elif step.budget is not None:  # SGLang's metrics count every draft; verified were no more than the budget.
            drafted = min(drafted, max(step.budget - lanes, 0))
        emitted = max(tokens_out(seen.batch) - seen.tokens_out, 0)
        self.run.steps.finish(step, Tokens(drafted, accepted, emitted), self._clock_ns())

    def ended(self, _scheduler: Any, _seen: Any, _result: Any) -> None:
        """After `Scheduler.run_event_loop`: its process ends soon."""
        if self.run is not None:
            self.run.stop()


def _depth(scheduler: Any, steps: Steps, *, overlaps: bool) -> int:
    """Submissions whose results were not taken in yet.

    The overlapping loop keeps them in its queue, beside batches that ran nothing of their own.
    """
    queue = getattr(scheduler, "result_queue", None) if overlaps else None
    if queue is not None:
        steps.keep([result for _, result in queue])
    return len(steps.in_flight)
