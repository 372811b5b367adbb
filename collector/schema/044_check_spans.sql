-- Checks what decode_otlp left open, on plain columns, which is quick: whether a span is odd, that is, may break the
-- contract; and whether it was stored before, whatever request it came in. A span's identity is its instance, its start
-- and its id; the first two are the key of graph_executions, so that only the granules of the very spans are read.
CREATE MATERIALIZED VIEW IF NOT EXISTS check_spans TO checked_spans AS
WITH
    row_number() OVER (PARTITION BY is_odd, service_instance_id, started_at, span_id) = 1 AS is_first,
    (service_instance_id, started_at, span_id) IN (
        SELECT service_instance_id, started_at, span_id FROM graph_executions
        WHERE (service_instance_id, started_at) IN (SELECT service_instance_id, started_at FROM decoded_spans)
    ) AS is_stored,
    -- The same arrival: by an earlier attempt to store this request, which failed half-way.
    (service_instance_id, started_at, span_id, received_at) IN (
        SELECT service_instance_id, started_at, span_id, received_at FROM graph_executions
        WHERE (service_instance_id, started_at) IN (SELECT service_instance_id, started_at FROM decoded_spans)
    ) AS is_stored_before
SELECT
    * EXCEPT is_well_typed,
    is_graph_execution AND NOT (
        is_well_typed AND empty(odd_resource) AND service_instance_id != ''
        AND length(span.trace_id) = 16 AND trace_id != toFixedString('', 16)
        AND length(span.span_id) = 8 AND span_id != toFixedString('', 8)
        AND started_at > toDateTime64(0, 9) AND duration_ns BETWEEN 0 AND 3600000000000
        AND span.end_time_unix_nano <= 9223372036854775807
        AND graph_name != ''
        AND graph_kind IN ('plain_decode', 'speculative', 'prefill', 'mixed', 'draft', 'state')
        AND graph_purpose IN ('ordinary', 'refresh', 'acceptance_probe')
        AND graph_gpu_time_source IN ('', 'cuda_event', 'cupti', 'profiler', 'host', 'simulated')
        AND graph_completion_feedback_reason IN (
            '', 'prefill', 'state', 'grammar', 'host_stop', 'copied_proposals', 'completion_inputs')
        AND isValidUTF8(concat(graph_name, '\n', scheduler_cost_model, '\n', cell_id, '\n', cell_arm, '\n',
            arrayStringConcat(scheduler_candidate_graphs, '\n')))
        AND least(graph_sequence, graph_gpu_time_ns, graph_wall_time_ns, ifNull(graph_queue_depth, 0),
            ifNull(batch_lanes, 0), ifNull(batch_tokens_drafted, 0), ifNull(batch_tokens_accepted, 0),
            ifNull(batch_tokens_emitted, 0), ifNull(batch_verification_budget, 0), ifNull(scheduler_estimate_ns, 0),
            ifNull(scheduler_estimate_gpu_ns, 0), ifNull(scheduler_estimate_handoff_ns, 0)) >= 0
        AND greatest(graph_gpu_time_ns, graph_wall_time_ns, ifNull(scheduler_estimate_ns, 0),
            ifNull(scheduler_estimate_gpu_ns, 0), ifNull(scheduler_estimate_handoff_ns, 0),
            ifNull(graph_gpu_start_offset_ns, 0)) <= 3600000000000
        AND ifNull(graph_gpu_start_offset_ns, 0) >= -3600000000000
        AND arrayAll(x -> x BETWEEN 0 AND 3600000000000, scheduler_candidate_estimates_ns)
        AND isFinite(ifNull(scheduler_expected_tokens, 0)) AND arrayAll(x -> isFinite(x), scheduler_candidate_expected_tokens)
        AND length(scheduler_candidate_graphs) = length(scheduler_candidate_estimates_ns)
        AND length(scheduler_candidate_graphs) = length(scheduler_candidate_expected_tokens)
    ) AS is_odd,
    is_first AND NOT is_stored AS is_new,
    is_first AND (NOT is_stored OR is_stored_before) AS is_own
FROM decoded_spans
