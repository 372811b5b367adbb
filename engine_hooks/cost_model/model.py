"""What every cost model takes and gives."""

from typing import Any, Final, NamedTuple, Protocol

from engine_hooks.contract.execution import GraphExecution
from engine_hooks.contract.names import Purpose

SavedState = dict[str, Any]
"""Plain data, as `json.loads` gives it."""

NEVER_NS: Final = 2**63 - 1
"""`expires_at_ns` of an estimate that never expires."""


class Measurement(NamedTuple):
    """One finished execution, as a cost model learns from it. Times are integer nanoseconds."""

    graph: str
    gpu_time_ns: int
    """How long the graph ran on the device."""
    wall_time_ns: int
    """The device's idle gap before it + its GPU time."""
    drained: bool
    """Submitted to an empty queue. A queued execution is not drained."""
    completion_feedback: bool
    """The submission after it had to wait for its results on the host."""
    purpose: Purpose
    now_ns: int
    """When the completion was observed, on the caller's monotonic clock."""
    after_idle: bool = False
    """The engine had no work before it."""
    duration_ns: int | None = None
    """Submission to observed completion, so that `now_ns - duration_ns` is the submission; `None`: not known."""


class Estimate(NamedTuple):
    """What a graph is believed to cost now. Times are integer nanoseconds."""

    total_ns: int
    """What the scheduler charges: `gpu_ns + handoff_ns`."""
    gpu_ns: int
    handoff_ns: int
    """The device's idle time charged on top of the GPU time."""
    measured_at_ns: int
    """When the graph was last measured, on the clock of `Measurement.now_ns`."""
    expires_at_ns: int
    """From this instant on the estimate has expired; `NEVER_NS`: it never does."""

    def age_ns(self, now_ns: int) -> int:
        """Time since the graph was last measured."""
        return now_ns - self.measured_at_ns

    def expired(self, now_ns: int) -> bool:
        """Whether the graph should be measured again. An expired estimate keeps its value until then."""
        return now_ns >= self.expires_at_ns


class CostModel(Protocol):
    """Learns what each graph costs from its finished executions.

    One caller at a time. Measurements come in the order of execution and `now_ns` never
    runs backwards; two models that were given the same measurements give the same
    estimates, whenever they were asked for. The model owns its state; `save` gives a copy.
    """

    @property
    def name(self) -> str:
        """The name by which `cost_model_named` finds it."""

    def record(self, measurement: Measurement) -> None:
        """Learn from one finished execution. Never fails on odd times: a wall time below the GPU time is no handoff."""

    def estimate(self, graph: str, now_ns: int) -> Estimate | None:
        """The cost of `graph` as believed at `now_ns`; `None` if it was never measured. Changes nothing."""

    def save(self) -> SavedState:
        """The whole state as plain data that survives `json.dumps`."""

    def restore(self, state: SavedState) -> None:
        """Take over a saved state, bit for bit, in place of the present one.

        Raises `StateError` if it is not a state of this model with these settings.
        """


def measurement_of(execution: GraphExecution, now_ns: int) -> Measurement:
    """What a cost model learns from a recorded execution observed at `now_ns`.

    Without a queue depth the execution counts as queued: only one known to be drained shows a handoff. A speculative
    round with drafts of its own is learnt with them, as `contract.drafting.with_drafts` puts them together.
    """
    return Measurement(
        execution.graph_name,
        execution.graph_gpu_time_ns,
        execution.graph_wall_time_ns,
        execution.graph_queue_depth == 0,
        execution.graph_completion_feedback,
        execution.graph_purpose,
        now_ns,
        execution.graph_after_idle,
        execution.duration_ns,
    )
