-- How each engine fared in each 30 s, by cell: cell_graphs without its graphs, so narrow that a day of a fleet is read at
-- once, and ordered by time, so that the newest half hour is found without the rest. What the live pages read.
-- A row is what one insert brought; the engine adds rows up in its own time, and so does every reader (GROUP BY).
-- docs/decisions/0020-live-queries.md has why, and what it costs.
CREATE TABLE IF NOT EXISTS cell_windows
(
    received_on Date,
    window_started_at DateTime('UTC') CODEC(Delta, ZSTD),
    service_instance_id LowCardinality(String),
    cell String CODEC(ZSTD),
    host_name LowCardinality(String),
    engine_package LowCardinality(String),
    engine_recipe LowCardinality(String),
    cell_arm LowCardinality(String),

    service_name SimpleAggregateFunction(max, String) CODEC(ZSTD),
    engine_name SimpleAggregateFunction(max, String) CODEC(ZSTD),
    engine_version SimpleAggregateFunction(max, String) CODEC(ZSTD),
    engine_tensor_parallel SimpleAggregateFunction(max, Nullable(Int64)),
    gpu_ids SimpleAggregateFunction(max, Array(String)) CODEC(ZSTD),
    engine_attributes SimpleAggregateFunction(max, Map(String, String)) CODEC(ZSTD),
    cell_id SimpleAggregateFunction(max, String) CODEC(ZSTD),
    cell_position SimpleAggregateFunction(max, Nullable(Int64)) CODEC(ZSTD),
    cell_concurrency SimpleAggregateFunction(max, Nullable(Int64)) CODEC(ZSTD),
    -- The cost model of the latest execution that names one.
    cost_model_latest SimpleAggregateFunction(max, Tuple(DateTime64(9, 'UTC'), String)) CODEC(ZSTD),

    first_started_at SimpleAggregateFunction(min, DateTime64(9, 'UTC')) CODEC(Delta, ZSTD),
    last_started_at SimpleAggregateFunction(max, DateTime64(9, 'UTC')) CODEC(Delta, ZSTD),
    last_ended_at SimpleAggregateFunction(max, DateTime64(9, 'UTC')) CODEC(Delta, ZSTD),
    last_received_at SimpleAggregateFunction(max, DateTime64(3, 'UTC')) CODEC(Delta, ZSTD),
    -- The latest submission, or the arrival where that is earlier: a clock that is ahead does not reach the future.
    newest_at SimpleAggregateFunction(max, DateTime64(9, 'UTC')) CODEC(Delta, ZSTD),

    executions SimpleAggregateFunction(sum, UInt64) CODEC(T64, ZSTD),
    sequence_first SimpleAggregateFunction(min, Int64) CODEC(Delta, ZSTD),
    sequence_last SimpleAggregateFunction(max, Int64) CODEC(Delta, ZSTD),
    -- Sums of the numbers and of their squares, modulo 2^64: where they add up, nothing is missing.
    sequence_sum SimpleAggregateFunction(sum, UInt64) CODEC(T64, ZSTD),
    sequence_squares_sum SimpleAggregateFunction(sum, UInt64) CODEC(T64, ZSTD),
    sequences AggregateFunction(groupBitmap, UInt64) CODEC(ZSTD),
    gpu_time_ns SimpleAggregateFunction(sum, Int64) CODEC(T64, ZSTD),
    tokens_emitted SimpleAggregateFunction(sum, Nullable(Int64)) CODEC(T64, ZSTD),
    -- Of ordinary decoding.
    plain_executions SimpleAggregateFunction(sum, UInt64) CODEC(T64, ZSTD),
    speculative_executions SimpleAggregateFunction(sum, UInt64) CODEC(T64, ZSTD),
    plain_wall_time_ns SimpleAggregateFunction(sum, Int64) CODEC(T64, ZSTD),
    speculative_wall_time_ns SimpleAggregateFunction(sum, Int64) CODEC(T64, ZSTD),

    -- Graphs executed, those executed as speculative, and candidates that promised more than one token a lane.
    graphs SimpleAggregateFunction(groupUniqArrayArray, Array(String)) CODEC(ZSTD),
    speculative_graphs SimpleAggregateFunction(groupUniqArrayArray, Array(String)) CODEC(ZSTD),
    promising_candidates SimpleAggregateFunction(groupUniqArrayArray, Array(String)) CODEC(ZSTD),

    -- What was found in the executions of a cell, in the row of its first window: judged_at, by the store's clock, and how
    -- many executions it had then. The latest judgement counts; a row that has one adds nothing to the figures above.
    -- 0 stands for what is not known. Its inflation is as the query estimate_inflation has it.
    judgement SimpleAggregateFunction(max, Tuple(
        judged_at DateTime64(3, 'UTC'),
        executions UInt64,
        turned_s Float64,
        decisions_turned UInt64,
        plain_since DateTime64(9, 'UTC'),
        plain_until DateTime64(9, 'UTC'),
        plain_tokens_per_s Float64,
        speculative_tokens_per_s Float64,
        best_speculative_graph String,
        inflation Array(Tuple(
            graph String,
            measured_in String,
            cost_ns Int64,
            gpu_time_median_ns Int64,
            estimate_mean_ns Float64,
            estimate_max_ns Int64,
            decisions UInt64,
            decisions_overcharged UInt64,
            overcharge_mean_ns Float64,
            overcharged_since DateTime64(9, 'UTC'),
            overcharged_until DateTime64(9, 'UTC'),
            decisions_turned UInt64,
            turned_s Float64,
            tokens_lost Float64
        ))
    )) CODEC(ZSTD),

    INDEX received_minmax last_received_at TYPE minmax GRANULARITY 1,
    INDEX instance_set service_instance_id TYPE set(300) GRANULARITY 1,
    INDEX cell_filter cell TYPE bloom_filter GRANULARITY 1
)
ENGINE = AggregatingMergeTree
PARTITION BY received_on
ORDER BY (window_started_at, service_instance_id, cell, host_name, engine_package, engine_recipe, cell_arm, received_on)
TTL received_on + INTERVAL 180 DAY
SETTINGS non_replicated_deduplication_window = 10000, ttl_only_drop_parts = 1, index_granularity = 1024
