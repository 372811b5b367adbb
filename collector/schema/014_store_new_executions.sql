-- Keeps new executions. Of a value that other columns tell, what it has beyond them: see graph_executions, which adds it again.
CREATE MATERIALIZED VIEW IF NOT EXISTS store_new_executions TO graph_executions AS
WITH
    indexOf(scheduler_candidate_graphs, graph_name) AS chosen,
    toUnixTimestamp64Nano(started_at) + ifNull(graph_gpu_start_offset_ns, 0) + graph_gpu_time_ns AS device_ended_ns
SELECT
    * EXCEPT (duration_ns, graph_gpu_time_ns, graph_wall_time_ns, graph_gpu_start_offset_ns, batch_tokens_accepted,
        scheduler_estimate_ns, scheduler_estimate_gpu_ns, scheduler_expected_tokens),
    [device_ended_ns - graph_wall_time_ns, device_ended_ns] AS stored_free_end_ns,
    duration_ns - ifNull(graph_gpu_start_offset_ns, 0) - graph_gpu_time_ns AS stored_duration_rest_ns,
    graph_wall_time_ns - graph_gpu_time_ns AS stored_wall_over_gpu_ns,
    graph_gpu_start_offset_ns - ifNull(graph_gpu_start_offset_ns, 0) AS stored_start_offset_rest_ns,
    batch_tokens_accepted - ifNull(batch_tokens_emitted, 0) + ifNull(batch_lanes, 0) AS stored_accepted_rest,
    scheduler_estimate_ns - scheduler_candidate_estimates_ns[chosen] AS stored_estimate_rest_ns,
    scheduler_estimate_gpu_ns - ifNull(scheduler_estimate_ns, 0) + ifNull(scheduler_estimate_handoff_ns, 0) AS stored_estimate_gpu_rest_ns,
    bitXor(reinterpretAsUInt64(scheduler_expected_tokens), reinterpretAsUInt64(scheduler_candidate_expected_tokens[chosen]))
        AS stored_expected_tokens_bits
FROM new_executions
