"""One step: what is known of it from its submission until its result was processed."""

from typing import Any, NamedTuple

from engine_hooks.contract.names import FeedbackReason, GpuTimeSource, GraphKind


class Submission(NamedTuple):
    """What is known of a step when it is submitted."""

    kind: GraphKind
    eager_name: str
    lanes: int
    feedback: FeedbackReason | None
    submitted_ns: int
    queue_depth: int
    after_idle: bool


class DeviceTimes(NamedTuple):
    """Times of one step, as the contract defines them. Nanoseconds."""

    gpu_time_ns: int
    wall_time_ns: int
    start_offset_ns: int | None
    """Device start - submission; `None` where it is not known."""
    source: GpuTimeSource


class Step:
    """One call of `Scheduler.run_batch`, until its result was processed."""

    __slots__ = (
        "budget",
        "completed_ns",
        "device",
        "estimate_ns",
        "graph",
        "result",
        "sequence",
        "submission",
        "timed",
    )

    def __init__(self, submission: Submission, sequence: int) -> None:
        self.submission = submission
        self.sequence = sequence
        self.graph = ""
        """The target model's graph; empty where none was replayed."""
        self.budget: int | None = None
        self.estimate_ns: int | None = None
        self.result: Any = None
        self.completed_ns = 0
        """When its result was on the host; 0 while it is not."""
        self.timed = False
        """Whether device times will come."""
        self.device: DeviceTimes | None = None
