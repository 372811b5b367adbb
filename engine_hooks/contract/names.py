"""Names of the contract: every span attribute, resource attribute and enumerated value, once.

A column and a Python field bear the attribute's name with underscores for dots
(`column_of`). A test forbids these literals elsewhere.

Source: the contract table of `docs/contract.md`.
"""

from enum import StrEnum
from typing import Final

SPAN_NAME_PREFIX: Final = "execute_graph"

GRAPH_NAME: Final = "graph.name"
GRAPH_KIND: Final = "graph.kind"
GRAPH_PURPOSE: Final = "graph.purpose"
GRAPH_SEQUENCE: Final = "graph.sequence"
GRAPH_GPU_TIME_NS: Final = "graph.gpu_time_ns"
GRAPH_WALL_TIME_NS: Final = "graph.wall_time_ns"
GRAPH_GPU_START_OFFSET_NS: Final = "graph.gpu_start_offset_ns"
GRAPH_GPU_TIME_SOURCE: Final = "graph.gpu_time_source"
GRAPH_QUEUE_DEPTH: Final = "graph.queue_depth"
GRAPH_AFTER_IDLE: Final = "graph.after_idle"
GRAPH_COMPLETION_FEEDBACK: Final = "graph.completion_feedback"
GRAPH_COMPLETION_FEEDBACK_REASON: Final = "graph.completion_feedback_reason"

BATCH_LANES: Final = "batch.lanes"
BATCH_TOKENS_DRAFTED: Final = "batch.tokens_drafted"
BATCH_TOKENS_ACCEPTED: Final = "batch.tokens_accepted"
BATCH_TOKENS_EMITTED: Final = "batch.tokens_emitted"
BATCH_VERIFICATION_BUDGET: Final = "batch.verification_budget"

SCHEDULER_COST_MODEL: Final = "scheduler.cost_model"
SCHEDULER_ESTIMATE_NS: Final = "scheduler.estimate_ns"
SCHEDULER_ESTIMATE_GPU_NS: Final = "scheduler.estimate_gpu_ns"
SCHEDULER_ESTIMATE_HANDOFF_NS: Final = "scheduler.estimate_handoff_ns"
SCHEDULER_EXPECTED_TOKENS: Final = "scheduler.expected_tokens"
SCHEDULER_CANDIDATE_GRAPHS: Final = "scheduler.candidate_graphs"
SCHEDULER_CANDIDATE_ESTIMATES_NS: Final = "scheduler.candidate_estimates_ns"
SCHEDULER_CANDIDATE_EXPECTED_TOKENS: Final = "scheduler.candidate_expected_tokens"

CELL_ID: Final = "cell.id"
CELL_ARM: Final = "cell.arm"
CELL_POSITION: Final = "cell.position"
CELL_CONCURRENCY: Final = "cell.concurrency"

SERVICE_NAME: Final = "service.name"
SERVICE_INSTANCE_ID: Final = "service.instance.id"
HOST_NAME: Final = "host.name"
ENGINE_NAME: Final = "engine.name"
ENGINE_VERSION: Final = "engine.version"
ENGINE_PACKAGE: Final = "engine.package"
ENGINE_RECIPE: Final = "engine.recipe"
ENGINE_TENSOR_PARALLEL: Final = "engine.tensor_parallel"
GPU_IDS: Final = "gpu.ids"

ENGINE_PREFIX: Final = "engine."
"""Resource attributes under this prefix that have no column of their own are kept in `engine_attributes`."""

CELL_WINDOW_NS: Final = 30_000_000_000
"""Length of a cell where no benchmark marks one: a tumbling window of one engine instance."""

LONGEST_TIME_NS: Final = 3_600_000_000_000
"""A GPU time, wall time, duration or estimate above one hour is impossible, and refused."""


class GraphKind(StrEnum):
    """What a graph computes."""

    PLAIN_DECODE = "plain_decode"
    SPECULATIVE = "speculative"
    PREFILL = "prefill"
    MIXED = "mixed"
    DRAFT = "draft"
    STATE = "state"


DECODING_KINDS: Final = (GraphKind.PLAIN_DECODE, GraphKind.SPECULATIVE)
"""A decode round, and what a scheduler chooses."""


class Purpose(StrEnum):
    """Why a graph was executed."""

    ORDINARY = "ordinary"
    REFRESH = "refresh"
    """An unused graph measured again, paid from refresh credit; start-up calibration too."""
    ACCEPTANCE_PROBE = "acceptance_probe"
    """A speculative round run to learn acceptance, not because it looked best."""


class GpuTimeSource(StrEnum):
    """Which clock measured the GPU time."""

    CUDA_EVENT = "cuda_event"
    """From event to event on the stream. At queue depth 0 launch latency is inside: see `docs/contract.md`."""
    CUPTI = "cupti"
    PROFILER = "profiler"
    HOST = "host"
    SIMULATED = "simulated"


class FeedbackReason(StrEnum):
    """Why the next submission needs this execution's results on the host first."""

    PREFILL = "prefill"
    STATE = "state"
    GRAMMAR = "grammar"
    HOST_STOP = "host_stop"
    COPIED_PROPOSALS = "copied_proposals"
    COMPLETION_INPUTS = "completion_inputs"


def column_of(attribute: str) -> str:
    """The column and Python field of an attribute: underscores for dots."""
    return attribute.replace(".", "_")
