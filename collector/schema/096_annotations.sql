-- One row for each mark in time that a person or a script made: "deployed 188". What it names, it is about; what it
-- leaves empty is any.
-- Written by `tachograph annotate` through POST /v1/rows/annotations. Kept for 400 days after it was stored.
CREATE TABLE IF NOT EXISTS annotations
(
    annotation_id String CODEC(ZSTD),
    at DateTime64(3, 'UTC') CODEC(Delta, ZSTD),
    text String CODEC(ZSTD),
    host_name LowCardinality(String) DEFAULT '',
    service_instance_id LowCardinality(String) DEFAULT '',
    engine_package LowCardinality(String) DEFAULT '',
    author LowCardinality(String) DEFAULT '',
    made_at DateTime64(3, 'UTC') CODEC(Delta, ZSTD),
    stored_at DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC') CODEC(Delta, ZSTD)
)
ENGINE = MergeTree
PARTITION BY toYYYYMM(stored_at)
ORDER BY (at, annotation_id)
TTL toDateTime(stored_at) + INTERVAL 400 DAY
SETTINGS non_replicated_deduplication_window = 10000
