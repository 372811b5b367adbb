-- What each engine did in each second: sums of graph_executions, for lines over time. An execution belongs to the second of
-- its submission. A row is what one insert brought; the engine adds rows up in its own time, and so does every reader.
-- docs/decisions/0020-live-queries.md
CREATE TABLE IF NOT EXISTS engine_seconds
(
    received_on Date,
    second_started_at DateTime('UTC') CODEC(Delta, ZSTD),
    service_instance_id LowCardinality(String),
    host_name LowCardinality(String),
    engine_package LowCardinality(String),
    engine_recipe LowCardinality(String),

    executions SimpleAggregateFunction(sum, UInt64) CODEC(T64, ZSTD),
    tokens_emitted SimpleAggregateFunction(sum, Nullable(Int64)) CODEC(T64, ZSTD),
    gpu_time_ns SimpleAggregateFunction(sum, Int64) CODEC(T64, ZSTD),
    wall_time_ns SimpleAggregateFunction(sum, Int64) CODEC(T64, ZSTD),
    -- Of ordinary decoding.
    plain_wall_time_ns SimpleAggregateFunction(sum, Int64) CODEC(T64, ZSTD),
    speculative_wall_time_ns SimpleAggregateFunction(sum, Int64) CODEC(T64, ZSTD),
    -- Of executions whose queue depth was recorded.
    depths_recorded SimpleAggregateFunction(sum, UInt64) CODEC(T64, ZSTD),
    depths_sum SimpleAggregateFunction(sum, Int64) CODEC(T64, ZSTD),
    depth_max SimpleAggregateFunction(max, Nullable(Int64)) CODEC(ZSTD),
    drained_executions SimpleAggregateFunction(sum, UInt64) CODEC(T64, ZSTD)
)
ENGINE = AggregatingMergeTree
PARTITION BY received_on
ORDER BY (second_started_at, service_instance_id, host_name, engine_package, engine_recipe, received_on)
TTL received_on + INTERVAL 30 DAY
SETTINGS non_replicated_deduplication_window = 10000, ttl_only_drop_parts = 1
