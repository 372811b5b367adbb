-- What became of each OTLP request's spans. Answers the sender, and tells a request that is sent again, because its
-- acknowledgement got lost, from a new one: for as long as a row lives. A request without spans has no row.
CREATE TABLE IF NOT EXISTS request_outcomes
(
    -- Hash of the request's bytes.
    request_id String CODEC(ZSTD),
    received_at DateTime64(3, 'UTC') CODEC(Delta, ZSTD),
    stored UInt64 CODEC(T64, ZSTD),
    -- Executions whose span was stored before, so that it was not stored again.
    deduplicated UInt64 CODEC(T64, ZSTD),
    refused Map(LowCardinality(String), UInt64),
    -- Spans that are no graph executions: counted, not kept.
    other_spans UInt64 CODEC(T64, ZSTD),
    clock_trouble UInt64 CODEC(T64, ZSTD)
)
ENGINE = MergeTree
PARTITION BY toYYYYMMDD(received_at)
ORDER BY request_id
TTL toDateTime(received_at) + INTERVAL 7 DAY
SETTINGS non_replicated_deduplication_window = 10000, ttl_only_drop_parts = 1
