-- One row for each change of an alert's state, and for each finding that came after it: what fired, when, for whom, and why.
-- Written by `tachograph alerts run` through POST /v1/rows/alert_history. Kept for 400 days after it was stored.
CREATE TABLE IF NOT EXISTS alert_history
(
    changed_at DateTime64(3, 'UTC') CODEC(Delta, ZSTD),
    alertname LowCardinality(String),
    severity LowCardinality(String),
    -- 'pending', 'firing', 'no_data', 'resolved', 'gone', 'inactive': docs/alerting.md says what each means.
    state LowCardinality(String),
    state_before LowCardinality(String),
    -- When it began to fire; NULL where it never did.
    starts_at Nullable(DateTime64(3, 'UTC')) CODEC(ZSTD),
    -- What it is about, as far as the rule names it: '' elsewhere.
    service_instance_id LowCardinality(String),
    host_name LowCardinality(String),
    cell String CODEC(ZSTD),
    labels Map(LowCardinality(String), String),
    annotations Map(LowCardinality(String), String),
    -- The numbers of the query's row, by column.
    measured Map(LowCardinality(String), Float64),
    stored_at DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC') CODEC(Delta, ZSTD)
)
ENGINE = MergeTree
PARTITION BY toYYYYMM(stored_at)
ORDER BY (alertname, changed_at)
TTL toDateTime(stored_at) + INTERVAL 400 DAY
SETTINGS non_replicated_deduplication_window = 10000
