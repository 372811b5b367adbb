-- One row for each graph execution, as the contract has it. A column is the attribute's name with
-- underscores for dots. NULL, '' and [] mean "not recorded".
-- Values that others tell already (the wall time of a pipelined round is its GPU time) are ALIAS columns here, over what they
-- differ by, in stored_…: exactly, whatever they are. `SELECT *` leaves ALIAS columns out, unless the session has
-- asterisk_include_alias_columns, which our endpoint sets. Rows come in by new_executions, which has every column.
-- docs/decisions/0024-values-stored-once.md
-- Partitioned and expired by arrival: a host with an odd clock, or a trace of 2022, makes no partitions of its own.
CREATE TABLE IF NOT EXISTS graph_executions
(
    service_instance_id LowCardinality(String),
    started_at DateTime64(9, 'UTC') CODEC(Delta, T64('bit'), ZSTD(3)),
    duration_ns Int64 ALIAS stored_free_end_ns[2] - toUnixTimestamp64Nano(started_at) + stored_duration_rest_ns,
    received_at DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC') CODEC(Delta, ZSTD),
    trace_id FixedString(16) CODEC(ZSTD),
    span_id FixedString(8) CODEC(Delta(8), ZSTD),

    service_name LowCardinality(String),
    host_name LowCardinality(String),
    engine_name LowCardinality(String),
    engine_version LowCardinality(String),
    engine_package LowCardinality(String),
    engine_recipe LowCardinality(String),
    engine_tensor_parallel Nullable(Int64) CODEC(ZSTD),
    gpu_ids Array(LowCardinality(String)) CODEC(ZSTD),
    engine_attributes Map(LowCardinality(String), String) CODEC(ZSTD),

    graph_name LowCardinality(String) CODEC(ZSTD),
    graph_kind LowCardinality(String) CODEC(ZSTD),
    graph_purpose LowCardinality(String),
    graph_sequence Int64 CODEC(DoubleDelta, ZSTD),
    graph_gpu_time_ns Int64 ALIAS stored_free_end_ns[2] - stored_free_end_ns[1] - stored_wall_over_gpu_ns,
    graph_wall_time_ns Int64 ALIAS stored_free_end_ns[2] - stored_free_end_ns[1],
    graph_gpu_start_offset_ns Nullable(Int64)
        ALIAS stored_free_end_ns[1] + stored_wall_over_gpu_ns - toUnixTimestamp64Nano(started_at) + stored_start_offset_rest_ns,
    graph_gpu_time_source LowCardinality(String),
    graph_queue_depth Nullable(Int64) CODEC(T64, ZSTD),
    graph_after_idle Bool,
    graph_completion_feedback Bool,
    graph_completion_feedback_reason LowCardinality(String) CODEC(ZSTD),

    batch_lanes Nullable(Int64) CODEC(T64, ZSTD),
    batch_tokens_drafted Nullable(Int64) CODEC(T64, ZSTD),
    batch_tokens_accepted Nullable(Int64) ALIAS ifNull(batch_tokens_emitted, 0) - ifNull(batch_lanes, 0) + stored_accepted_rest,
    batch_tokens_emitted Nullable(Int64) CODEC(T64, ZSTD),
    batch_verification_budget Nullable(Int64) CODEC(T64, ZSTD),

    scheduler_cost_model LowCardinality(String),
    scheduler_estimate_ns Nullable(Int64)
        ALIAS scheduler_candidate_estimates_ns[indexOf(scheduler_candidate_graphs, graph_name)] + stored_estimate_rest_ns,
    scheduler_estimate_gpu_ns Nullable(Int64)
        ALIAS ifNull(scheduler_estimate_ns, 0) - ifNull(scheduler_estimate_handoff_ns, 0) + stored_estimate_gpu_rest_ns,
    scheduler_estimate_handoff_ns Nullable(Int64) CODEC(ZSTD(6)),
    scheduler_expected_tokens Nullable(Float64) ALIAS reinterpretAsFloat64(bitXor(stored_expected_tokens_bits,
        reinterpretAsUInt64(scheduler_candidate_expected_tokens[indexOf(scheduler_candidate_graphs, graph_name)]))),
    scheduler_candidate_graphs Array(LowCardinality(String)) CODEC(ZSTD(6)),
    scheduler_candidate_estimates_ns Array(Int64) CODEC(ZSTD(6)),
    scheduler_candidate_expected_tokens Array(Float64) CODEC(ZSTD(6)),

    cell_id LowCardinality(String),
    cell_arm LowCardinality(String),
    cell_position Nullable(Int64) CODEC(T64, ZSTD),
    cell_concurrency Nullable(Int64) CODEC(T64, ZSTD),

    -- When the device was free for it, and when it ended there, both as Unix time: its end less its wall time, and its end.
    -- In one column, because a pipelined round begins where the one before it ended: so a codec sees that, row after row.
    stored_free_end_ns Array(Int64) CODEC(Delta(8), T64('bit'), ZSTD(3)),
    -- What the columns above that are ALIAS have beyond what others tell. Sums and differences wrap around, so none is too large.
    stored_duration_rest_ns Int64 CODEC(ZSTD),
    stored_wall_over_gpu_ns Int64 CODEC(ZSTD),
    stored_start_offset_rest_ns Nullable(Int64) CODEC(T64, ZSTD),
    stored_accepted_rest Nullable(Int64) CODEC(T64, ZSTD),
    stored_estimate_rest_ns Nullable(Int64) CODEC(ZSTD),
    stored_estimate_gpu_rest_ns Nullable(Int64) CODEC(ZSTD),
    -- The bits in which a double differs from the chosen candidate's.
    stored_expected_tokens_bits Nullable(UInt64) CODEC(ZSTD),

    -- The benchmark's cell, else the start of its 30 s window in Unix seconds. Unique within one engine instance.
    cell String ALIAS if(cell_id != '', cell_id, toString(intDiv(toUnixTimestamp64Nano(started_at), 30000000000) * 30)),

    INDEX started_at_minmax started_at TYPE minmax GRANULARITY 1,
    INDEX cell_id_set cell_id TYPE set(100) GRANULARITY 1
)
ENGINE = MergeTree
PARTITION BY toYYYYMMDD(received_at)
ORDER BY (service_instance_id, started_at)
TTL toDateTime(received_at) + INTERVAL 30 DAY
SETTINGS non_replicated_deduplication_window = 10000,
    -- A day goes whole: no merge reads the rest of it again for the rows that have expired.
    ttl_only_drop_parts = 1,
    -- Merge column by column from the first row on: for so many columns it takes a third of the time.
    vertical_merge_algorithm_min_rows_to_activate = 1, vertical_merge_algorithm_min_columns_to_activate = 1
