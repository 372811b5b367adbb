"""A simulated round as the `GraphExecution` that any engine would have recorded."""

from typing import NamedTuple

from engine_hooks.contract.execution import EngineResource, GraphExecution
from engine_hooks.contract.names import GpuTimeSource, Purpose
from engine_hooks.scheduler.scheduler import Scheduler
from engine_hooks.simulator.parameters import Engine
from engine_hooks.simulator.submission import Submission

EPOCH_UNIX_NS = 1_793_491_200_000_000_000
"""2026-11-01T00:00:00Z, where virtual time 0 lies unless told otherwise."""


class CellLabels(NamedTuple):
    """What a benchmark writes onto its executions, and where virtual time 0 lies on the calendar."""

    epoch_unix_ns: int = EPOCH_UNIX_NS
    cell_id: str = ""
    cell_arm: str = ""
    cell_position: int | None = None
    cell_concurrency: int | None = None


def simulated_resource(service_instance_id: str, **fields: str) -> EngineResource:
    """The resource of a simulated engine; `fields` are those of `EngineResource`."""
    return EngineResource(service_instance_id, **{"engine_name": "simulator", **fields})  # type: ignore[arg-type]


def execution_of(
    done: Submission, observed_ns: int, engine: Engine, labels: CellLabels, scheduler: Scheduler
) -> GraphExecution:
    """The record of one round whose completion was observed at virtual time `observed_ns`."""
    decision, graph = done.decision, done.graph
    decoding = decision is not None
    fields = decision.span_fields() if decision is not None else {"scheduler_cost_model": scheduler.cost_model.name}
    return GraphExecution(
        graph_name=graph.name,
        graph_kind=graph.kind,
        graph_sequence=done.sequence,
        graph_gpu_time_ns=done.ended_ns - done.started_ns,
        graph_wall_time_ns=done.wall_time_ns,
        started_at=labels.epoch_unix_ns + done.submitted_ns,
        duration_ns=observed_ns - done.submitted_ns,
        graph_purpose=decision.purpose if decision is not None else Purpose.ORDINARY,
        graph_gpu_start_offset_ns=done.started_ns - done.submitted_ns,
        graph_gpu_time_source=GpuTimeSource.SIMULATED,
        graph_queue_depth=done.queue_depth,
        graph_after_idle=done.after_idle,
        graph_completion_feedback=done.feedback is not None,
        graph_completion_feedback_reason=done.feedback,
        batch_lanes=engine.lanes if decoding else 1,
        batch_tokens_drafted=0 if decision is None else decision.drafts.total(engine.lanes),
        batch_tokens_accepted=sum(done.outcome[2]),
        batch_tokens_emitted=done.outcome[0],
        batch_verification_budget=graph.verification_budget,
        cell_id=labels.cell_id,
        cell_arm=labels.cell_arm,
        cell_position=labels.cell_position,
        cell_concurrency=labels.cell_concurrency,
        **fields,
    )
