-- How each engine fared in each half hour: a row that the collector settles out of cell_windows once the half hour has ended
-- (collector/judging/settle_half_hours.sql), so that questions of a day need not add up its windows.
-- A row holds good as long as cell_windows has as many executions as it counts (queries/sql/parts/unsettled.sql); what has come
-- since is read there, until the half hour is settled anew, as a whole. The latest counts: read it by FINAL.
-- docs/decisions/0020-live-queries.md
CREATE TABLE IF NOT EXISTS engine_half_hours
(
    received_on Date,
    half_hour_started_at DateTime('UTC') CODEC(Delta, ZSTD),
    service_instance_id LowCardinality(String),
    host_name LowCardinality(String),
    engine_package LowCardinality(String),
    engine_recipe LowCardinality(String),
    -- '', or of one cell that reaches into another half hour its share of this one: a row of its own that holds its figures.
    reaching_cell String CODEC(ZSTD),
    settled_at DateTime64(3, 'UTC') CODEC(Delta, ZSTD),

    service_name LowCardinality(String),
    engine_name LowCardinality(String),
    engine_version LowCardinality(String),
    engine_tensor_parallel Nullable(Int64),
    gpu_ids Array(String) CODEC(ZSTD),
    engine_attributes Map(String, String) CODEC(ZSTD),
    cost_model_latest Tuple(DateTime64(9, 'UTC'), String) CODEC(ZSTD),

    first_started_at DateTime64(9, 'UTC') CODEC(Delta, ZSTD),
    last_started_at DateTime64(9, 'UTC') CODEC(Delta, ZSTD),
    last_ended_at DateTime64(9, 'UTC') CODEC(Delta, ZSTD),
    last_received_at DateTime64(3, 'UTC') CODEC(Delta, ZSTD),
    executions UInt64 CODEC(T64, ZSTD),
    arms Array(String) CODEC(ZSTD),
    graphs Array(String) CODEC(ZSTD),
    is_speculative Bool,
    -- Of the windows without a speculative round: what was executed, and candidates that promised more than one token a lane.
    plain_graphs Array(String) CODEC(ZSTD),
    promising_candidates Array(String) CODEC(ZSTD),

    -- Its windows in order: last arrival - last observed completion.
    windows_started_at Array(DateTime('UTC')) CODEC(Delta, ZSTD),
    arrival_delays_ms Array(Int64) CODEC(ZSTD),

    -- Of the cells that lie within it, or of the one that reaches beyond. Plain ones are stuck if the engine can speculate.
    cells_within UInt32,
    cells_started_at DateTime64(9, 'UTC') CODEC(Delta, ZSTD),
    cells_ended_at DateTime64(9, 'UTC') CODEC(Delta, ZSTD),
    cells_elapsed_ns Int64 CODEC(T64, ZSTD),
    cells_executions UInt64 CODEC(T64, ZSTD),
    cells_tokens Nullable(Int64) CODEC(T64, ZSTD),
    cells_plain_ns Int64 CODEC(T64, ZSTD),
    cells_speculative_ns Int64 CODEC(T64, ZSTD),
    plain_cells UInt32,
    plain_cells_ns Int64 CODEC(T64, ZSTD),
    worst_cell String CODEC(ZSTD),
    worst_arm LowCardinality(String),
    worst_rank Int64 CODEC(T64, ZSTD)
)
ENGINE = ReplacingMergeTree(settled_at)
PARTITION BY received_on
ORDER BY (half_hour_started_at, service_instance_id, host_name, engine_package, engine_recipe, reaching_cell)
TTL received_on + INTERVAL 180 DAY
SETTINGS non_replicated_deduplication_window = 10000, ttl_only_drop_parts = 1, index_granularity = 1024
