"""What SGLang calls in each of its processes (entry-point group `sglang.srt.plugins`).

SGLang's registry imports what is hooked, in whatever process asks. So nothing is asked for but in a
process that runs a scheduler, there one hook only, on the scheduler's making; and once that is made,
in the one process of each replica that is recorded, the rest, of the modules that are loaded by then.
"""

import atexit
import logging
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from types import FrameType
from typing import Any, Final

from engine_hooks.adapters.guarded import After, Before, Hook, wanted
from engine_hooks.adapters.sglang import targets
from engine_hooks.adapters.sglang.device_times import cuda_timer
from engine_hooks.adapters.sglang.graph_hooks import GraphHooks
from engine_hooks.adapters.sglang.resource import resource_of
from engine_hooks.adapters.sglang.scheduler_hooks import SHUTDOWN_S, Run, SchedulerHooks
from engine_hooks.adapters.sglang.steps import Steps
from engine_hooks.adapters.sglang.targets import Method
from engine_hooks.recorder.recorder import Recorder

logger = logging.getLogger(__name__)

HOOKS: Final[dict[Method, Hook]] = {}
"""The hooks of this process, by what they are on; empty until `register` has set some."""


def register() -> None:
    """Sets the hook on the scheduler's making, if this process makes one. Never raises; again is harmless."""
    try:
        if wanted() and not HOOKS and is_scheduler_process(sys._getframe()):
            graphs = GraphHooks()
            HOOKS.update(hooks_of_a_process(graphs, SchedulerHooks(graphs, partial(open_run, graphs))))
            set_hooks({targets.CREATED: HOOKS[targets.CREATED]})  # SGLang applies them when all plugins have set theirs
    except Exception:
        logger.warning("Tachograph does not record this engine", exc_info=True)


def is_scheduler_process(frame: FrameType | None) -> bool:
    """Whether this is called, however far below, from the function that a scheduler process runs."""
    while frame is not None:
        function = (frame.f_globals.get("__name__"), frame.f_code.co_name)
        if function == (targets.SCHEDULER, targets.SCHEDULER_PROCESS):
            return True
        frame = frame.f_back
    return False


def hooks_of_a_process(graphs: GraphHooks, scheduler: SchedulerHooks) -> dict[Method, Hook]:
    """A hook for each method of `targets.METHODS`, with nothing wrapped yet."""
    around: dict[Method, tuple[Before | None, After | None]] = {
        targets.CREATED: (None, scheduler.created),
        targets.RUN: (scheduler.submitting, scheduler.submitted),
        targets.PROCESS: (scheduler.processing, scheduler.processed),
        targets.LOOP: (None, scheduler.ended),
        targets.OBSERVED: (scheduler.observed, None),
        targets.FORWARD: (graphs.forwarding, None),
        targets.EXECUTE: (graphs.executing, graphs.executed),
        targets.EXECUTE_PREFILL: (graphs.executing, graphs.executed),
        targets.BUDGET: (None, graphs.budgeted),
        **dict.fromkeys(targets.REPLAYS, (graphs.replaying, None)),
    }
    return {method: Hook(f"{method.owner}.{method.name}", before, after) for method, (before, after) in around.items()}


def set_hooks(hooks: Mapping[Method, Hook]) -> Any:
    """Hands these hooks to SGLang's registry, as far as this version has their methods; returns the registry."""
    module = sys.modules[targets.REGISTRY]
    for method in _there(hooks):
        module.HookRegistry.register(method.path, around(hooks[method]), module.HookType.AROUND)
    return module.HookRegistry


def around(hook: Hook) -> Callable[..., Any]:
    """The hook as SGLang's registry calls it: with the method, then the object and the arguments."""

    def call(original: Callable[..., Any], subject: Any, *arguments: Any, **named: Any) -> Any:
        return hook.around(original, subject, arguments, named)

    return call


def open_run(graphs: GraphHooks, scheduler: Any) -> Run | None:
    """Starts recording a scheduler that was made, and sets the other hooks; `None` in any but a replica's first rank."""
    parallel = sys.modules[targets.CONTEXT].get_parallel()
    if any(getattr(parallel, rank) for rank in targets.RANKS):
        return None
    resource = resource_of(scheduler.server_args, parallel.dp_rank or 0)
    recorder = Recorder(resource, exit_timeout_s=SHUTDOWN_S)
    recorder.start()
    graphs.timer = cuda_timer()
    steps = Steps(recorder.record, graphs.timer)

    def stop() -> None:
        atexit.unregister(stop)
        steps.settle(time.monotonic_ns(), last=True)
        recorder.stop(SHUTDOWN_S)

    atexit.register(stop)  # after the recorder's own, so that it runs before
    loaded = {method: hook for method, hook in HOOKS.items() if method.module in sys.modules}
    set_hooks({method: hook for method, hook in loaded.items() if method != targets.CREATED}).apply_hooks()
    logger.info("Tachograph records this engine as %s", resource.service_instance_id)
    return Run(steps, stop)


def _there(methods: Iterable[Method]) -> list[Method]:
    """Those that this version of SGLang has; what goes unrecorded is said once."""
    found = []
    for method in methods:
        owner = getattr(sys.modules.get(method.module), method.owner, None)
        if hasattr(owner, method.name):
            found.append(method)
        else:
            logger.warning("this version of SGLang has no %s: not recorded is %s", method.path, method.records)
    return found
