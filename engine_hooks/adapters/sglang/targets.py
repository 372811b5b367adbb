"""Every name of SGLang that the hooks lean on: what is wrapped, and what is read off its objects.

`tests/sglang/test_names.py` holds the table against the source of SGLang's wheel.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

REGISTRY: Final = "sglang.srt.plugins.hook_registry"
CONTEXT: Final = "sglang.srt.runtime_context"
SCHEDULER: Final = "sglang.srt.managers.scheduler"
RESULTS: Final = "sglang.srt.managers.scheduler_components.batch_result_processor"
MODEL_RUNNER: Final = "sglang.srt.model_executor.model_runner"
DECODE_GRAPHS: Final = "sglang.srt.model_executor.runner.decode_cuda_graph_runner"
PREFILL_GRAPHS: Final = "sglang.srt.model_executor.runner.prefill_cuda_graph_runner"
BACKENDS: Final = "sglang.srt.model_executor.runner_backend"
BUDGETS: Final = "sglang.srt.speculative.dspark_components.dspark_planner"

SCHEDULER_PROCESS: Final = "run_scheduler_process"
"""The function of `SCHEDULER` that is a scheduler process; it loads the plugins."""


class Method(NamedTuple):
    """One method that is wrapped."""

    module: str
    owner: str
    name: str
    parameters: tuple[str, ...]
    """Its own, as far as they are read here; `self` or `cls` is not among them."""
    records: str
    """What goes unrecorded in a version without it."""

    @property
    def path(self) -> str:
        """As `HookRegistry.register` names it."""
        return f"{self.module}.{self.owner}.{self.name}"


CREATED: Final = Method(SCHEDULER, "Scheduler", "__init__", (), "anything")
RUN: Final = Method(SCHEDULER, "Scheduler", "run_batch", ("batch",), "anything")
PROCESS: Final = Method(SCHEDULER, "Scheduler", "process_batch_result", ("batch", "result"), "anything")
LOOP: Final = Method(SCHEDULER, "Scheduler", "run_event_loop", (), "the last half second of an engine that ends")
OBSERVED: Final = Method(
    RESULTS,
    "SchedulerBatchResultProcessor",
    "snapshot_auxiliary_output_starts",
    ("batch", "result"),
    "completions to better than the time that their results take on the host",
)
FORWARD: Final = Method(
    MODEL_RUNNER, "ModelRunner", "forward", ("forward_batch",), "device times of steps without a graph"
)
EXECUTE: Final = Method(
    DECODE_GRAPHS, "DecodeCudaGraphRunner", "execute", ("forward_batch",), "which graph a decoding step replays"
)
EXECUTE_PREFILL: Final = Method(
    PREFILL_GRAPHS, "PrefillCudaGraphRunner", "execute", ("forward_batch",), "which graph a prefill replays"
)
REPLAYS: Final = tuple(
    Method(f"{BACKENDS}.{module}", owner, "replay", ("shape_key",), "which graph a step replays")
    for module, owner in (
        ("full_cuda_graph_backend", "FullCudaGraphBackend"),
        ("breakable_cuda_graph_backend", "BreakableCudaGraphBackend"),
        ("tc_piecewise_cuda_graph_backend", "TcPiecewiseCudaGraphBackend"),
    )
)
BUDGET: Final = Method(
    BUDGETS, "HostConfidenceBudgetPlanner", "compute_budget", (), "what the verification budget was expected to cost"
)

METHODS: Final = (CREATED, RUN, PROCESS, LOOP, OBSERVED, FORWARD, EXECUTE, EXECUTE_PREFILL, *REPLAYS, BUDGET)

READ: Final[Mapping[tuple[str, str], tuple[str, ...]]] = {
    (SCHEDULER, "Scheduler"): ("server_args", "result_queue", "enable_overlap", "spec_algorithm", "_sched_idled"),
    ("sglang.srt.managers.schedule_batch", "ScheduleBatch"): (
        "reqs",
        "forward_mode",
        "spec_algorithm",
        "has_grammar",
        "extend_num_tokens",
        "batch_size",
    ),
    ("sglang.srt.managers.schedule_batch", "Req"): ("output_ids",),
    ("sglang.srt.managers.utils", "GenerationBatchResult"): (
        "num_correct_drafts",
        "speculative_num_draft_tokens",
        "num_non_draft_tokens_per_req",
    ),
    ("sglang.srt.speculative.spec_info", "SpeculativeAlgorithm"): ("is_none",),
    ("sglang.srt.model_executor.runner.shape_key", "ShapeKey"): ("size", "variant_label"),
    (DECODE_GRAPHS, "DecodeCudaGraphRunner"): ("capture_forward_mode", "model_runner"),
    (PREFILL_GRAPHS, "PrefillCudaGraphRunner"): ("model_runner",),
    (MODEL_RUNNER, "ModelRunner"): ("is_draft_worker",),
    (BUDGETS, "HostConfidenceBudgetPlanner"): ("last_decision",),
    (BUDGETS, "VerifyBudgetDecision"): ("budget", "predicted_step_seconds"),
}
"""Fields, attributes and methods that are read, by the class that has them."""

MODES: Final = ("EXTEND", "DECODE", "MIXED", "IDLE", "TARGET_VERIFY", "PREBUILT", "SPLIT_PREFILL", "DLLM_EXTEND")
"""Names of `ForwardMode` that a batch of the scheduler may have."""
RANKS: Final = ("attn_tp_rank", "attn_cp_rank", "pp_rank")
"""Attributes of `get_parallel()`: all 0 in the one process of a replica that is recorded."""
SETTINGS: Final[Mapping[str, str]] = {
    "model": "model_path",
    "quantization": "quantization",
    "attention_backend": "attention_backend",
    "data_parallel": "dp_size",
    "pipeline_parallel": "pp_size",
    "speculative_algorithm": "speculative_algorithm",
    "speculative_tokens": "speculative_num_draft_tokens",
    "speculative_steps": "speculative_num_steps",
    "disable_cuda_graph": "disable_cuda_graph",
    "disable_overlap_schedule": "disable_overlap_schedule",
    "chunked_prefill_size": "chunked_prefill_size",
    "schedule_policy": "schedule_policy",
}
"""What is kept of `ServerArgs` under `engine.`: our name, and theirs."""
