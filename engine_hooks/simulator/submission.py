"""A simulated round on its way."""

from typing import NamedTuple

from engine_hooks.contract.names import FeedbackReason
from engine_hooks.scheduler.decision import Decision
from engine_hooks.scheduler.graphs import Graph
from engine_hooks.simulator.draws import Outcome


class Submission(NamedTuple):
    """One round from submission to end, as the host will observe it."""

    sequence: int
    graph: Graph
    decision: Decision | None
    """`None` for what the scheduler does not choose: prefills."""
    submitted_ns: int
    started_ns: int
    ended_ns: int
    wall_time_ns: int
    queue_depth: int
    after_idle: bool
    feedback: FeedbackReason | None
    outcome: Outcome
