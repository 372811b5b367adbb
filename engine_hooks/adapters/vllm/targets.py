"""Every name of vLLM that the hooks lean on, by module: what is wrapped, and what is read off its objects.

`tests/vllm/test_names.py` holds the table against the source of the versions that are supported.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

SCHEDULER: Final = "vllm.v1.core.sched.scheduler"
ENGINE_CORE: Final = "vllm.v1.engine.core"
GRAPHS_V2: Final = "vllm.v1.worker.gpu.cudagraph_utils"
GRAPHS_V1: Final = "vllm.compilation.cuda_graph"
FORWARD_CONTEXT: Final = "vllm.forward_context"
WORKER: Final = "vllm.v1.worker.gpu_worker"
ADAPTIVE: Final = "vllm.v1.worker.gpu.spec_decode.adaptive_verification"


class Method(NamedTuple):
    """One method that is wrapped, and what goes unrecorded in a version without it."""

    module: str
    owner: str
    name: str
    records: str

    @property
    def title(self) -> str:
        return f"{self.owner}.{self.name}"


CREATED: Final = Method(SCHEDULER, "Scheduler", "__init__", "the first step without a delay")
SCHEDULE: Final = Method(SCHEDULER, "Scheduler", "schedule", "anything")
UPDATE: Final = Method(SCHEDULER, "Scheduler", "update_from_output", "anything")
STEP: Final = Method(ENGINE_CORE, "EngineCore", "step", "the end of steps that failed")
STEP_QUEUED: Final = Method(ENGINE_CORE, "EngineCore", "step_with_batch_queue", "the end of steps that failed")
RESUME: Final = Method(ENGINE_CORE, "EngineCore", "resume_scheduler", "that an engine slept")
SHUTDOWN: Final = Method(ENGINE_CORE, "EngineCore", "shutdown", "the last half second of an engine that is killed")
FULL_GRAPH: Final = Method(GRAPHS_V2, "CudaGraphManager", "run_fullgraph", "which CUDA graph the V2 runner replays")
GRAPH_CALL: Final = Method(GRAPHS_V1, "CUDAGraphWrapper", "__call__", "which CUDA graph the V1 runner replays")
BUDGET: Final = Method(
    ADAPTIVE, "AdaptiveVerificationManager", "get_num_tokens", "what adaptive verification estimates"
)
SAMPLE: Final = Method(WORKER, "Worker", "sample_tokens", "the device's own times")

METHODS: Final = (
    CREATED,
    SCHEDULE,
    UPDATE,
    STEP,
    STEP_QUEUED,
    RESUME,
    SHUTDOWN,
    FULL_GRAPH,
    GRAPH_CALL,
    BUDGET,
    SAMPLE,
)

READ: Final[Mapping[tuple[str, str], tuple[str, ...]]] = {
    ("vllm.v1.core.sched.output", "SchedulerOutput"): (
        "scheduled_new_reqs",
        "scheduled_cached_reqs",
        "num_scheduled_tokens",
        "total_num_scheduled_tokens",
        "scheduled_spec_decode_tokens",
        "num_invalid_spec_tokens",
        "has_structured_output_requests",
    ),
    ("vllm.v1.core.sched.output", "CachedRequestData"): ("req_ids", "resumed_req_ids", "num_output_tokens"),
    ("vllm.v1.outputs", "ModelRunnerOutput"): ("sampled_token_ids", "req_id_to_index"),
    ("vllm.v1.engine", "EngineCoreOutput"): ("new_token_ids",),
    ("vllm.v1.engine", "EngineCoreOutputs"): ("outputs",),
    ("vllm.v1.request", "Request"): ("is_finished", "num_stale_output_tokens", "drop_stale_output"),
    (SCHEDULER, "Scheduler"): (
        "vllm_config",
        "requests",
        "num_spec_tokens",
        "num_sampled_tokens_per_step",
    ),
    ("vllm.v1.core.sched.interface", "SchedulerInterface"): ("has_unfinished_requests",),
    (ENGINE_CORE, "EngineCore"): ("scheduler", "batch_queue"),
    (FORWARD_CONTEXT, "ForwardContext"): ("batch_descriptor", "cudagraph_runtime_mode"),
    (FORWARD_CONTEXT, "BatchDescriptor"): ("num_tokens", "num_reqs", "uniform", "num_active_loras"),
    (GRAPHS_V1, "CUDAGraphWrapper"): ("runtime_mode", "concrete_cudagraph_entries"),
    (GRAPHS_V2, "BatchExecutionDescriptor"): (
        "cg_mode",
        "num_tokens",
        "num_reqs",
        "uniform_token_count",
        "num_active_loras",
    ),
    (ADAPTIVE, "AdaptiveVerificationManager"): ("cost_tables",),
}
"""Fields, attributes and methods that are read, by the class that has them."""
