-- One row for each graph execution that needed a second look, and what is to become of it.
-- Keeps nothing: its views do.
CREATE TABLE IF NOT EXISTS judged_spans
(
    request_id String,
    refusal String,
    clock_trouble Bool,
    -- To be stored now.
    is_new Bool,
    -- Counts as stored by this request: now, or by an earlier attempt to store it that failed half-way.
    is_own Bool,

    started_at DateTime64(9, 'UTC'),
    duration_ns Int64,
    received_at DateTime64(3, 'UTC'),
    trace_id FixedString(16),
    span_id FixedString(8),

    service_instance_id LowCardinality(String),
    service_name LowCardinality(String),
    host_name LowCardinality(String),
    engine_name LowCardinality(String),
    engine_version LowCardinality(String),
    engine_package LowCardinality(String),
    engine_recipe LowCardinality(String),
    engine_tensor_parallel Nullable(Int64),
    gpu_ids Array(String),
    engine_attributes Map(String, String),

    graph_name String,
    graph_kind String,
    graph_purpose String,
    graph_sequence Int64,
    graph_gpu_time_ns Int64,
    graph_wall_time_ns Int64,
    graph_gpu_start_offset_ns Nullable(Int64),
    graph_gpu_time_source String,
    graph_queue_depth Nullable(Int64),
    graph_after_idle Bool,
    graph_completion_feedback Bool,
    graph_completion_feedback_reason String,
    batch_lanes Nullable(Int64),
    batch_tokens_drafted Nullable(Int64),
    batch_tokens_accepted Nullable(Int64),
    batch_tokens_emitted Nullable(Int64),
    batch_verification_budget Nullable(Int64),
    scheduler_cost_model String,
    scheduler_estimate_ns Nullable(Int64),
    scheduler_estimate_gpu_ns Nullable(Int64),
    scheduler_estimate_handoff_ns Nullable(Int64),
    scheduler_expected_tokens Nullable(Float64),
    scheduler_candidate_graphs Array(String),
    scheduler_candidate_estimates_ns Array(Int64),
    scheduler_candidate_expected_tokens Array(Float64),
    cell_id String,
    cell_arm String,
    cell_position Nullable(Int64),
    cell_concurrency Nullable(Int64)
)
ENGINE = Null
