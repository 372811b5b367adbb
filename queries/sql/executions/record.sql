-- question: What was recorded of every execution, field by field as the contract has it, in the order of submission?
-- uses: selected
-- parameter limit: UInt64 = 200000 | At most so many executions, earliest first.
-- column service_instance_id [] | The engine instance.
-- column cell [] | The cell.
-- column service_name [] | The service it belongs to.
-- column host_name [] | Its host.
-- column engine_name [] | The engine.
-- column engine_version [] | Its version.
-- column engine_package [] | The package it was built from.
-- column engine_recipe [] | The recipe it runs.
-- column engine_tensor_parallel [] | GPUs that share each layer.
-- column gpu_ids [] | Its GPUs.
-- column engine_attributes [] | Anything else the engine says of itself.
-- column graph_name [] | The graph.
-- column graph_kind [] | What it computes.
-- column graph_sequence [] | Submission number in this engine run.
-- column graph_gpu_time_ns [ns] | Time on the device.
-- column graph_wall_time_ns [ns] | GPU time + the device's idle gap before it.
-- column started_at [time] | Submission.
-- column duration_ns [ns] | Submission to observed completion, the wait in the queue included.
-- column graph_purpose [] | Why it was executed.
-- column graph_gpu_start_offset_ns [ns] | Device start - submission.
-- column graph_gpu_time_source [] | Where the GPU time comes from.
-- column graph_queue_depth [submissions] | Submissions in flight at submission; 0 is drained.
-- column graph_after_idle [] | The engine had no work before.
-- column graph_completion_feedback [] | The next submission needed this one's results.
-- column graph_completion_feedback_reason [] | Why it did.
-- column batch_lanes [lanes] | Lanes in the batch.
-- column batch_tokens_drafted [tokens] | Draft tokens verified.
-- column batch_tokens_accepted [tokens] | Draft tokens accepted.
-- column batch_tokens_emitted [tokens] | Tokens emitted.
-- column batch_verification_budget [tokens] | Positions the graph verifies at most.
-- column scheduler_cost_model [] | The model that charged it.
-- column scheduler_estimate_ns [ns] | What the scheduler charged the graph.
-- column scheduler_estimate_gpu_ns [ns] | Of that, GPU time.
-- column scheduler_estimate_handoff_ns [ns] | Of that, handoff.
-- column scheduler_expected_tokens [tokens] | What it expected of it.
-- column scheduler_candidate_graphs [] | Every graph it chose from.
-- column scheduler_candidate_estimates_ns [ns] | What it charged each.
-- column scheduler_candidate_expected_tokens [tokens] | What it expected of each.
-- column cell_id [] | The benchmark's mark.
-- column cell_arm [] | Arm of the comparison.
-- column cell_position [] | Position in the benchmark's order.
-- column cell_concurrency [] | Requests in flight, as the benchmark set it.
-- table: cell, graph_sequence, started_at, graph_name, graph_purpose, graph_gpu_time_ns, graph_wall_time_ns, graph_queue_depth, scheduler_estimate_ns, batch_tokens_emitted
-- example: tachograph query record --param cell=bench-r014 --format parquet -o cell.parquet
SELECT
    service_instance_id,
    cell,
    service_name,
    host_name,
    engine_name,
    engine_version,
    engine_package,
    engine_recipe,
    engine_tensor_parallel,
    gpu_ids,
    engine_attributes,
    graph_name,
    graph_kind,
    graph_sequence,
    graph_gpu_time_ns,
    graph_wall_time_ns,
    started_at,
    duration_ns,
    graph_purpose,
    graph_gpu_start_offset_ns,
    graph_gpu_time_source,
    graph_queue_depth,
    graph_after_idle,
    graph_completion_feedback,
    graph_completion_feedback_reason,
    batch_lanes,
    batch_tokens_drafted,
    batch_tokens_accepted,
    batch_tokens_emitted,
    batch_verification_budget,
    scheduler_cost_model,
    scheduler_estimate_ns,
    scheduler_estimate_gpu_ns,
    scheduler_estimate_handoff_ns,
    scheduler_expected_tokens,
    scheduler_candidate_graphs,
    scheduler_candidate_estimates_ns,
    scheduler_candidate_expected_tokens,
    cell_id,
    cell_arm,
    cell_position,
    cell_concurrency
FROM selected
ORDER BY service_instance_id, started_at, graph_sequence
LIMIT {limit:UInt64}
