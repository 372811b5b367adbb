"""Whose time a draft model's graph takes: of the speculative round that verifies what it drafted.

The one rule, for engines, cost models, findings and replays; in SQL the part `measured_in_cell` has it. Draft executions
belong to the decode round that follows them in the order of submission, if that is a speculative one. Those before
plain decode belong to no round.
"""

from collections.abc import Iterable, Sequence

from engine_hooks.contract.execution import GraphExecution
from engine_hooks.contract.names import DECODING_KINDS, GraphKind


def drafts_by_round(executions: Iterable[GraphExecution]) -> dict[int, tuple[int, ...]]:
    """The speculative rounds that have drafts of their own: by place of each, the places of those drafts.

    Args:
        executions: One engine's, in the order of submission.
    """
    found: dict[int, tuple[int, ...]] = {}
    drafts: list[int] = []
    for place, execution in enumerate(executions):
        if execution.graph_kind == GraphKind.DRAFT:
            drafts.append(place)
        elif execution.graph_kind in DECODING_KINDS:
            if drafts and execution.graph_kind == GraphKind.SPECULATIVE:
                found[place] = tuple(drafts)
            drafts = []
    return found


def with_drafts(execution: GraphExecution, drafts: Sequence[GraphExecution]) -> GraphExecution:
    """A speculative round as one execution: what a cost model learns of it (`measurement_of`).

    It began as the first draft was submitted, on what was in flight then. Its GPU time and its wall time are those
    of all of them together.

    Args:
        execution: The one that verifies.
        drafts: Those before it, in the order of submission; none leave it as it is.
    """
    if not drafts:
        return execution
    first, together = drafts[0], (*drafts, execution)
    return execution._replace(
        graph_gpu_time_ns=sum(one.graph_gpu_time_ns for one in together),
        graph_wall_time_ns=sum(one.graph_wall_time_ns for one in together),
        started_at=first.started_at,
        duration_ns=execution.started_at + execution.duration_ns - first.started_at,
        graph_gpu_start_offset_ns=first.graph_gpu_start_offset_ns,
        graph_queue_depth=first.graph_queue_depth,
        graph_after_idle=any(one.graph_after_idle for one in together),
    )
