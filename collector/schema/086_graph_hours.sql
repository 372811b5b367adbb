-- What each graph took on the GPU in each 30 s, an hour of an engine a row: settled by the collector out of cell_graphs once
-- executions are there (collector/judging/settle_hours.sql), so that questions of six hours or a week need not add up sketches.
-- An hour is settled anew as a whole, and the latest counts: read it by FINAL, which costs nothing on so few rows.
-- docs/decisions/0020-live-queries.md
CREATE TABLE IF NOT EXISTS graph_hours
(
    received_on Date,
    hour_started_at DateTime('UTC') CODEC(Delta, ZSTD),
    service_instance_id LowCardinality(String),
    graph_name LowCardinality(String),
    host_name LowCardinality(String),
    engine_package LowCardinality(String),
    engine_recipe LowCardinality(String),
    settled_at DateTime64(3, 'UTC') CODEC(Delta, ZSTD),
    -- The latest arrival of what is counted.
    last_received_at DateTime64(3, 'UTC') CODEC(Delta, ZSTD),

    -- Its windows in order: their latest arrival, executions, GPU time and the median of it (within 1 %).
    windows_started_at Array(DateTime('UTC')) CODEC(Delta, ZSTD),
    windows_received_at Array(DateTime64(3, 'UTC')) CODEC(Delta, ZSTD),
    executions Array(UInt64) CODEC(T64, ZSTD),
    gpu_times_ns Array(Int64) CODEC(T64, ZSTD),
    gpu_time_medians_ns Array(Float64) CODEC(ZSTD)
)
ENGINE = ReplacingMergeTree(settled_at)
PARTITION BY received_on
ORDER BY (hour_started_at, service_instance_id, graph_name)
TTL received_on + INTERVAL 180 DAY
SETTINGS non_replicated_deduplication_window = 10000, ttl_only_drop_parts = 1, index_granularity = 1024
