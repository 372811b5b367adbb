"""The hooks on scheduler and engine core: which steps there are, and when and how each ended."""

import atexit
import logging
import time
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from engine_hooks.adapters.guarded import argument
from engine_hooks.adapters.vllm.batches import tokens_emitted, verified
from engine_hooks.adapters.vllm.graph_hooks import GraphHooks
from engine_hooks.adapters.vllm.resource import resource_of
from engine_hooks.adapters.vllm.steps import Results, Step, Steps
from engine_hooks.recorder.recorder import Recorder

logger = logging.getLogger(__name__)

SHUTDOWN_S: Final = 2.0
"""How long an engine core that ends waits for the collector to take what is left."""
_KEPT_AS: Final = "_tachograph_run"


class Run:
    """One scheduler's steps and their recorder, for as long as its engine core lives."""

    def __init__(self, scheduler: Any, attributes: Mapping[str, str]) -> None:
        """Takes what takes time: the resource, a connection, a thread.

        Args:
            scheduler: vLLM's.
            attributes: what else to say of the engine.
        """
        config = scheduler.vllm_config
        resource = resource_of(config)
        self.resource = resource._replace(engine_attributes={**resource.engine_attributes, **attributes})
        self.recorder = Recorder(self.resource, exit_timeout_s=SHUTDOWN_S)
        self.steps = Steps(
            self.recorder.record, queued=config.max_concurrent_batches > 1, speculates=scheduler.num_spec_tokens > 0
        )
        self.recorder.start()
        atexit.register(self.close)  # after the recorder's own, so that it runs before
        logger.info("Tachograph records this engine as %s", self.resource.service_instance_id)

    def close(self) -> None:
        """Records what still waits for its device times, and hands everything over. Again is harmless."""
        atexit.unregister(self.close)
        self.steps.settle(time.monotonic_ns(), last=True)
        self.recorder.stop(SHUTDOWN_S)


class _Update(NamedTuple):
    """What was seen before `update_from_output`."""

    step: Step
    completed_ns: int
    drafted: int
    accepted: int


class SchedulerHooks:
    """What is done around the methods of `Scheduler` and `EngineCore`. Called by the engine core's thread alone."""

    def __init__(self, graphs: GraphHooks) -> None:
        self._graphs = graphs

    def created(self, scheduler: Any, _seen: Any, _result: Any) -> None:
        """After `Scheduler.__init__`: what takes time is done before the first step."""
        self._run_of(scheduler)

    def scheduled(self, scheduler: Any, _seen: Any, output: Any) -> None:
        """After `Scheduler.schedule`: a step is about to be submitted."""
        step = self._run_of(scheduler).steps.submit(output, time.monotonic_ns())
        if step is not None:
            self._graphs.begin(step)

    def updating(self, scheduler: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> _Update | None:
        """Before `Scheduler.update_from_output`: a step is complete, and its tokens are whole."""
        completed_ns = time.monotonic_ns()
        output = argument(arguments, named, 0, "scheduler_output")
        step = self._run_of(scheduler).steps.taken(output)
        if step is None:
            return None
        model_output = argument(arguments, named, 1, "model_runner_output")
        return _Update(step, completed_ns, *verified(scheduler, output, model_output))

    def updated(self, scheduler: Any, seen: _Update | None, outputs: Any) -> None:
        """After it: what was given out is known."""
        if seen is None:
            return
        self._graphs.end(seen.step)
        self._graphs.collect()
        steps = self._run_of(scheduler).steps
        results = Results(seen.completed_ns, seen.drafted, seen.accepted, tokens_emitted(outputs))
        steps.finish(seen.step, results)
        if not scheduler.has_unfinished_requests():
            steps.idle()

    def stepping(self, engine: Any, _arguments: tuple[Any, ...], _named: dict[str, Any]) -> None:
        """Before `EngineCore.step…`: if its queue is empty, nothing of ours is in flight either."""
        steps = self._run_of(engine.scheduler).steps
        steps.queued = engine.batch_queue is not None
        if not engine.batch_queue:
            steps.abandon()
        self._graphs.collect()
        steps.settle(time.monotonic_ns())

    def resumed(self, engine: Any, _seen: Any, _result: Any) -> None:
        """After `EngineCore.resume_scheduler`, which waking up calls as well: it could not run anything till now."""
        self._run_of(engine.scheduler).steps.idle()

    def shutting_down(self, engine: Any, _arguments: tuple[Any, ...], _named: dict[str, Any]) -> None:
        """Before `EngineCore.shutdown`: its process may be killed soon after."""
        self._graphs.collect()
        run = getattr(engine.scheduler, _KEPT_AS, None)
        if run is not None:
            run.close()

    def _run_of(self, scheduler: Any) -> Run:
        run: Run | None = scheduler.__dict__.get(_KEPT_AS)
        if run is None:
            self._graphs.prepare()
            run = Run(scheduler, self._graphs.attributes())
            setattr(scheduler, _KEPT_AS, run)
        return run
