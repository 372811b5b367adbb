"""The hooks in the model runner: which graph a step replays, what its verification budget was expected to cost,
and when its device work begins."""

from functools import lru_cache
from typing import Any

from engine_hooks.adapters.guarded import argument
from engine_hooks.adapters.sglang.device_times import StepTimer
from engine_hooks.adapters.sglang.step import Step


class GraphHooks:
    """What is done around the methods of the model runner. They run within `Scheduler.run_batch`, in its thread.

    A step's name is the target model's first graph. Those of a drafter only begin its device time: they are
    replayed by runners of its own, or by one whose model runner says that it is a drafter's.
    Outside of any step (warm-up, dummy batches) nothing is noted.
    """

    def __init__(self) -> None:
        self.timer: StepTimer | None = None
        self._step: Step | None = None
        self._runner: Any = None

    def begin(self, step: Step | None) -> None:
        """Graphs replayed from now on are this step's."""
        self._step, self._runner = step, None

    def end(self, step: Step) -> None:
        """The step was submitted."""
        self._step = None
        if self.timer is not None:
            self.timer.end(step)

    def forwarding(self, _runner: Any, _arguments: tuple[Any, ...], _named: dict[str, Any]) -> None:
        """Before `ModelRunner.forward`: the first one begins the step's device time."""
        if self._step is not None and self.timer is not None:
            self.timer.begin(self._step)

    def executing(self, runner: Any, _arguments: tuple[Any, ...], _named: dict[str, Any]) -> None:
        """Before `execute` of the decode and the prefill graph runner: the replay inside is this runner's."""
        if self._step is not None:
            self._runner = runner

    def executed(self, _runner: Any, _seen: Any, _result: Any) -> None:
        """After it."""
        self._runner = None

    def replaying(self, _backend: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        """Before a backend's `replay`."""
        step, runner = self._step, self._runner
        if step is None:
            return
        if self.timer is not None:
            self.timer.begin(step)
        if step.graph or runner is None or runner.model_runner.is_draft_worker:
            return
        mode = getattr(runner, "capture_forward_mode", None)  # the prefill runner has but one
        step.graph = graph_name(mode.name if mode else "PREFILL", argument(arguments, named, 0, "shape_key"))

    def budgeted(self, planner: Any, _seen: Any, _budget: Any) -> None:
        """After `HostConfidenceBudgetPlanner.compute_budget`: its decision is looked at, not taken."""
        step, decision = self._step, planner.last_decision
        if step is None or decision is None:
            return
        step.budget = step.submission.lanes + decision.budget
        if decision.predicted_step_seconds is not None:
            step.estimate_ns = round(decision.predicted_step_seconds * 1e9)


@lru_cache(maxsize=4096)
def graph_name(mode: str, key: Any) -> str:
    """`DECODE-32` for 32 requests, `TARGET_VERIFY-32`, `PREFILL-512` for 512 tokens; variants (LoRA) say so."""
    return f"{mode}-{key.size}{f'-{key.variant_label}' if key.variant_label else ''}"
