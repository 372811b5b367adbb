"""Rules that one execution alone can break, although the contract would not refuse it."""

from collections.abc import Iterator
from typing import Final

from collector.conformance import rules
from collector.conformance.findings import Breach, shown
from engine_hooks.contract import names
from engine_hooks.contract.execution import GraphExecution
from engine_hooks.contract.names import DECODING_KINDS, GraphKind, Purpose
from engine_hooks.contract.validation import clock_trouble

_EARLIEST_NS: Final = 1_262_304_000_000_000_000
"""2010-01-01: before it, the time is of another unit or clock."""
_AHEAD_NS: Final = 60_000_000_000
_LATE_NS: Final = 3_600_000_000_000
_ROUNDING_NS: Final = 1_000
_ROUNDING_SHARE: Final = 0.01
"""How far device and host clocks may differ: float32 milliseconds, anchors renewed every few seconds."""


def rounding_ns(time_ns: int) -> int:
    """By how much a time may be off for no other reason than the rounding of two clocks."""
    return max(_ROUNDING_NS, int(time_ns * _ROUNDING_SHARE))


def breaches_of_execution(execution: GraphExecution, received_ns: int, *, live: bool) -> Iterator[Breach]:
    """What an execution breaks by itself.

    Args:
        execution: one that the contract does not refuse.
        received_ns: when it came in, or its file was read. Unix time.
        live: it came from a running engine.
    """
    yield from _clocks(execution)
    yield from _calendar(execution, received_ns, live=live)
    yield from _tokens(execution)
    yield from _scheduler(execution)
    yield from _candidates(execution)
    yield from _labels(execution)


def _clocks(execution: GraphExecution) -> Iterator[Breach]:
    gpu, wall, duration = execution.graph_gpu_time_ns, execution.graph_wall_time_ns, execution.duration_ns
    slack = rounding_ns(gpu)
    if gpu > wall + slack:
        yield Breach(rules.GPU_ABOVE_WALL, execution.graph_name, f"{gpu} ns of {wall} ns")
    elif clock_trouble(execution):
        offset = execution.graph_gpu_start_offset_ns
        yield Breach(rules.CLOCK_ROUNDING, "", f"GPU {gpu} ns, wall {wall} ns, device start at {offset} ns")
    if gpu > duration + slack:
        yield Breach(rules.GPU_ABOVE_SPAN, execution.graph_name, f"{gpu} ns in a span of {duration} ns")


def _calendar(execution: GraphExecution, received_ns: int, *, live: bool) -> Iterator[Breach]:
    started, ended = execution.started_at, execution.started_at + execution.duration_ns
    if ended > received_ns + _AHEAD_NS:
        yield Breach(rules.CLOCK_FUTURE, "", f"ends {_seconds(ended - received_ns)} ahead")
    elif started < _EARLIEST_NS:
        yield Breach(rules.CLOCK_PAST, "", f"starts at {started}{_unit_of_instant(started, received_ns)}")
    elif live and ended < received_ns - _LATE_NS:
        yield Breach(rules.CLOCK_LATE, "", f"ended {_seconds(received_ns - ended)} before it came")


def _seconds(interval_ns: int) -> str:
    return f"{interval_ns / 1e9:.0f} s"


def _unit_of_instant(started: int, received_ns: int) -> str:
    for unit, factor in (("µs", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)):
        if _EARLIEST_NS < started * factor <= received_ns + _AHEAD_NS:
            return f", which would be {unit}"
    return ""


def _tokens(execution: GraphExecution) -> Iterator[Breach]:
    name, kind, drafted = execution.graph_name, execution.graph_kind, execution.batch_tokens_drafted
    accepted, budget = execution.batch_tokens_accepted, execution.batch_verification_budget
    if drafted is None:
        return
    if accepted is not None and accepted > drafted:
        yield Breach(rules.TOKENS_ACCEPTED, name, f"{accepted} of {drafted}")
    if kind is GraphKind.PLAIN_DECODE and drafted:
        yield Breach(rules.KIND_DRAFTED, name, f"{drafted} draft tokens verified")
    # A mixed batch has lanes that verify nothing.
    own = execution.batch_lanes or 0 if kind is GraphKind.SPECULATIVE else 0
    if budget is not None and drafted and drafted + own > budget:
        value = f"{drafted} draft tokens" + (f" and {own} lanes' own" if own else "")
        yield Breach(rules.BUDGET_EXCEEDED, name, f"{value}, of {budget} positions at most")


def _scheduler(execution: GraphExecution) -> Iterator[Breach]:
    estimate = execution.scheduler_estimate_ns
    if estimate is None:
        if execution.graph_kind in DECODING_KINDS and execution.graph_purpose is Purpose.ORDINARY:
            yield Breach(rules.ESTIMATE_MISSING, names.SCHEDULER_ESTIMATE_NS, "not there")
        return
    if not execution.scheduler_cost_model:
        yield Breach(rules.ESTIMATE_MISSING, names.SCHEDULER_COST_MODEL, "not there")
    gpu, handoff = execution.scheduler_estimate_gpu_ns, execution.scheduler_estimate_handoff_ns
    if gpu is not None and handoff is not None and abs(gpu + handoff - estimate) > 1:
        yield Breach(rules.ESTIMATE_PARTS, "", f"{gpu} + {handoff} is not {estimate}")


def _candidates(execution: GraphExecution) -> Iterator[Breach]:
    graphs, estimate = execution.scheduler_candidate_graphs, execution.scheduler_estimate_ns
    if not graphs:
        if estimate is not None:
            yield Breach(rules.CANDIDATES_MISSING, "", "not there")
        return
    name = execution.graph_name
    if name not in graphs:
        yield Breach(rules.CANDIDATES_WITHOUT_CHOSEN, name, f"not in {shown(', '.join(graphs))}")
        return
    charged = execution.scheduler_candidate_estimates_ns[graphs.index(name)]
    if estimate is not None and charged != estimate:
        yield Breach(rules.CANDIDATE_ESTIMATE, name, f"{charged} ns among the candidates, {estimate} ns charged")


def _labels(execution: GraphExecution) -> Iterator[Breach]:
    reason = execution.graph_completion_feedback_reason
    if reason is not None and not execution.graph_completion_feedback:
        yield Breach(rules.FEEDBACK_REASON, reason, "without the flag")
    if execution.graph_after_idle and execution.graph_queue_depth:
        yield Breach(rules.AFTER_IDLE_IN_FLIGHT, "", f"depth {execution.graph_queue_depth}")
    labels = (execution.cell_arm, execution.cell_position, execution.cell_concurrency)
    if not execution.cell_id and labels != ("", None, None):
        yield Breach(rules.CELL_WITHOUT_ID, "", f"arm, position, concurrency: {shown(labels)}")
