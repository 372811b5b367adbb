-- One row for each execution that a replay decided again: what was chosen then, and what the other cost model chooses.
-- Written by `tachograph replay` through POST /v1/rows/replay_decisions. Kept for 90 days after it was stored.
CREATE TABLE IF NOT EXISTS replay_decisions
(
    replay_id String CODEC(ZSTD),
    service_instance_id LowCardinality(String),
    cell LowCardinality(String),
    graph_sequence Int64 CODEC(Delta, ZSTD),
    started_at DateTime64(9, 'UTC') CODEC(Delta, ZSTD),
    -- As recorded.
    graph_name LowCardinality(String),
    scheduler_estimate_ns Nullable(Int64) DEFAULT NULL CODEC(T64, ZSTD),
    -- As replayed.
    replayed_graph_name LowCardinality(String),
    replayed_estimate_ns Nullable(Int64) DEFAULT NULL CODEC(T64, ZSTD),
    -- Expected tokens a second of the replayed choice over those of the next best, less 1; NULL where nothing competed.
    margin Nullable(Float64) DEFAULT NULL CODEC(ZSTD),
    candidate_graphs Array(LowCardinality(String)) DEFAULT [],
    candidate_estimates_ns Array(Int64) DEFAULT [] CODEC(ZSTD),
    candidate_expected_tokens Array(Float64) DEFAULT [] CODEC(ZSTD),
    stored_at DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC') CODEC(Delta, ZSTD)
)
ENGINE = MergeTree
PARTITION BY toYYYYMM(stored_at)
ORDER BY (service_instance_id, replay_id, started_at)
TTL toDateTime(stored_at) + INTERVAL 90 DAY
SETTINGS non_replicated_deduplication_window = 10000
