"""One graph execution, and the engine it ran in."""

from collections.abc import Mapping
from typing import NamedTuple

from engine_hooks.contract.names import (
    CELL_WINDOW_NS,
    FeedbackReason,
    GpuTimeSource,
    GraphKind,
    Purpose,
)


class GraphExecution(NamedTuple):
    """One execution of a graph. Field names are the contract's attributes with underscores for dots.

    A named tuple, because the engine's thread makes one for each execution. `None` and
    empty mean "not recorded". Times are integer nanoseconds. Counts are per execution,
    over all lanes.

    Source: `docs/contract.md`.
    """

    graph_name: str
    """The engine's own name: `P128`, `decode`, `prefill-2048`."""
    graph_kind: GraphKind
    graph_sequence: int
    """Submission number in this engine run; a gap shows lost records."""
    graph_gpu_time_ns: int
    """How long the graph ran on the device."""
    graph_wall_time_ns: int
    """How long it held up the pipeline: the device's idle gap before it + its GPU time."""
    started_at: int
    """Submission, in nanoseconds since the Unix epoch."""
    duration_ns: int
    """Submission to observed completion, waiting in the queue included."""
    graph_purpose: Purpose = Purpose.ORDINARY
    graph_gpu_start_offset_ns: int | None = None
    """Device start - submission."""
    graph_gpu_time_source: GpuTimeSource | None = None
    graph_queue_depth: int | None = None
    """Submissions already in flight at submission; 0 is drained."""
    graph_after_idle: bool = False
    """The engine had no work before this one: no interval may span that idle."""
    graph_completion_feedback: bool = False
    """The next submission needs this one's results on the host first."""
    graph_completion_feedback_reason: FeedbackReason | None = None
    batch_lanes: int | None = None
    batch_tokens_drafted: int | None = None
    batch_tokens_accepted: int | None = None
    batch_tokens_emitted: int | None = None
    batch_verification_budget: int | None = None
    """Positions the graph verifies at most, each lane's own token included."""
    scheduler_cost_model: str = ""
    scheduler_estimate_ns: int | None = None
    """What the scheduler charged this graph when it chose it: GPU + handoff."""
    scheduler_estimate_gpu_ns: int | None = None
    scheduler_estimate_handoff_ns: int | None = None
    scheduler_expected_tokens: float | None = None
    scheduler_candidate_graphs: tuple[str, ...] = ()
    """Every graph it chose from, the chosen one among them; the three arrays have one length."""
    scheduler_candidate_estimates_ns: tuple[int, ...] = ()
    scheduler_candidate_expected_tokens: tuple[float, ...] = ()
    cell_id: str = ""
    cell_arm: str = ""
    cell_position: int | None = None
    cell_concurrency: int | None = None


class EngineResource(NamedTuple):
    """The engine instance that executions come from: OTLP's resource. Empty and `None` mean "not recorded"."""

    service_instance_id: str
    """Unique for one run of one engine process."""
    service_name: str = ""
    host_name: str = ""
    engine_name: str = ""
    engine_version: str = ""
    engine_package: str = ""
    engine_recipe: str = ""
    engine_tensor_parallel: int | None = None
    gpu_ids: tuple[str, ...] = ()
    engine_attributes: Mapping[str, str] = {}
    """Anything else under `engine.`, keyed without that prefix: `prefix_cache_bytes`, `all_reduce`."""


def cell_of(execution: GraphExecution) -> str:
    """Which cell of its engine an execution belongs to: the benchmark's, else the start of its 30 s window.

    The window's name is its start in Unix seconds.
    """
    return execution.cell_id or str(execution.started_at // CELL_WINDOW_NS * (CELL_WINDOW_NS // 1_000_000_000))
