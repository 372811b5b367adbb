-- One row for each replay and form: what would another cost model have done with one engine's recorded executions?
-- Written by `tachograph replay` through POST /v1/rows/replays. Kept for 90 days after it was stored.
CREATE TABLE IF NOT EXISTS replays
(
    replay_id String CODEC(ZSTD),
    made_at DateTime64(3, 'UTC') CODEC(Delta, ZSTD),
    -- 'exact': the recorded rounds, decided again. 'closed_loop': the rounds that the other choices would have led to.
    form LowCardinality(String),
    -- What was replayed; an empty cell is the whole of the instance.
    service_instance_id LowCardinality(String),
    cell LowCardinality(String),
    cost_model LowCardinality(String),
    parameters Map(LowCardinality(String), String),
    -- Figures by name; docs/replay.md defines each.
    results Map(LowCardinality(String), Float64),
    stored_at DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC') CODEC(Delta, ZSTD)
)
ENGINE = MergeTree
PARTITION BY toYYYYMM(stored_at)
ORDER BY (service_instance_id, replay_id)
TTL toDateTime(stored_at) + INTERVAL 90 DAY
SETTINGS non_replicated_deduplication_window = 10000
