"""What vLLM calls in each of its processes (entry-point group `vllm.general_plugins`).

Nothing happens unless an OTLP endpoint is named and nobody switched the hooks off. Then methods
of the classes in `targets` are wrapped as soon as vLLM has imported them. Only the process of an engine core makes
schedulers, so only there anything is recorded.
"""

import logging
from collections.abc import Mapping
from functools import partial
from types import ModuleType

from engine_hooks.adapters.guarded import After, Before, Hook, wanted
from engine_hooks.adapters.vllm import targets
from engine_hooks.adapters.vllm.graph_hooks import GraphHooks
from engine_hooks.adapters.vllm.imports import PostImportFinder
from engine_hooks.adapters.vllm.scheduler_hooks import SchedulerHooks
from engine_hooks.adapters.vllm.targets import Method
from engine_hooks.adapters.vllm.wrapping import wrap

logger = logging.getLogger(__name__)

HOOKS: dict[Method, Hook] = {}
"""The hooks of this process, by what they are on; empty until `register` has set some."""


def register() -> None:
    """Sets the hooks. Never raises, imports nothing of vLLM; again is harmless."""
    try:
        if wanted() and not HOOKS:
            HOOKS.update(hooks())
            watch(HOOKS)
    except Exception:  # vLLM does not catch what a plugin raises
        logger.warning("Tachograph does not record this engine", exc_info=True)


def hooks() -> dict[Method, Hook]:
    """A hook for each method of `targets.METHODS`, with nothing wrapped yet."""
    graphs = GraphHooks()
    steps = SchedulerHooks(graphs)
    around: dict[Method, tuple[Before | None, After | None]] = {
        targets.CREATED: (None, steps.created),
        targets.SCHEDULE: (None, steps.scheduled),
        targets.UPDATE: (steps.updating, steps.updated),
        targets.STEP: (steps.stepping, None),
        targets.STEP_QUEUED: (steps.stepping, None),
        targets.RESUME: (None, steps.resumed),
        targets.SHUTDOWN: (steps.shutting_down, None),
        targets.FULL_GRAPH: (graphs.replaying_v2, None),
        targets.GRAPH_CALL: (graphs.calling_v1, None),
        targets.BUDGET: (graphs.budgeting, graphs.budgeted),
        targets.SAMPLE: (None, graphs.sampled),
    }
    return {method: Hook(method.title, before, after) for method, (before, after) in around.items()}


def watch(hooks: Mapping[Method, Hook], finder: PostImportFinder | None = None) -> None:
    """Wraps every method as soon as its module has been imported."""
    finder = finder or PostImportFinder()
    for module in dict.fromkeys(method.module for method in hooks):
        mine = {method: hook for method, hook in hooks.items() if method.module == module}
        finder.watch(module, partial(set_on, hooks=mine))


def set_on(module: ModuleType, hooks: Mapping[Method, Hook]) -> None:
    """Wraps the methods of one module of vLLM; says which of them it does not have."""
    for method, hook in hooks.items():
        owner = getattr(module, method.owner, None)
        if owner is None or not hasattr(owner, method.name):
            logger.warning("this version of vLLM has no %s: not recorded is %s", method.title, method.records)
        else:
            wrap(owner, method.name, hook)
