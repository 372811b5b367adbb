-- One row for each span of a request, as decoded: the columns of graph_executions, right where the span keeps the
-- contract. Keeps nothing: its view does.
CREATE TABLE IF NOT EXISTS decoded_spans
(
    request_id String,
    is_graph_execution Bool,
    is_well_typed Bool,
    clock_trouble Bool,

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
    cell_concurrency Nullable(Int64),

    -- For the second look at what is odd.
    odd_resource Array(Tuple(
        key LowCardinality(String),
        value Tuple(
            string_value Nullable(String), bool_value Nullable(Bool),
            int_value Nullable(Int64), double_value Nullable(Float64),
            array_value Tuple(values Array(Tuple(
                string_value Nullable(String),
                int_value Nullable(Int64), double_value Nullable(Float64))))))),
    span Tuple(
        trace_id String,
        span_id String,
        name String,
        start_time_unix_nano UInt64,
        end_time_unix_nano UInt64,
        attributes Array(Tuple(
            key LowCardinality(String),
            value Tuple(
                string_value Nullable(String), bool_value Nullable(Bool),
                int_value Nullable(Int64), double_value Nullable(Float64),
                array_value Tuple(values Array(Tuple(
                    string_value Nullable(String),
                    int_value Nullable(Int64), double_value Nullable(Float64))))))))
)
ENGINE = Null
