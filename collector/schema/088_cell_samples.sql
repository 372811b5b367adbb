-- What sampling found out about each cell and did with its executions: a row when it was examined, another one when they
-- were dropped, which the engine and every reader add up. Without sampling there is none.
-- docs/decisions/0023-the-standard-pipeline-capacity-sampling.md
CREATE TABLE IF NOT EXISTS cell_samples
(
    -- Day of the arrival of the executions that are counted here.
    received_on Date,
    service_instance_id LowCardinality(String),
    cell String CODEC(ZSTD),
    first_started_at SimpleAggregateFunction(min, DateTime64(9, 'UTC')) CODEC(Delta, ZSTD),
    last_started_at SimpleAggregateFunction(max, DateTime64(9, 'UTC')) CODEC(Delta, ZSTD),
    executions SimpleAggregateFunction(max, UInt64) CODEC(T64, ZSTD),
    -- Why it is kept whole, on its own account; '' where nothing speaks against dropping it.
    reason SimpleAggregateFunction(max, String) CODEC(ZSTD),
    examined_at SimpleAggregateFunction(max, DateTime64(3, 'UTC')) CODEC(Delta, ZSTD),
    -- 1970 where they were not.
    dropped_at SimpleAggregateFunction(max, DateTime64(3, 'UTC')) CODEC(Delta, ZSTD)
)
ENGINE = AggregatingMergeTree
PARTITION BY received_on
ORDER BY (service_instance_id, cell, received_on)
TTL received_on + INTERVAL 180 DAY
SETTINGS non_replicated_deduplication_window = 10000, ttl_only_drop_parts = 1
