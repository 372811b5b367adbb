-- What each engine did with each graph in each 30 s, by cell: the sums, extremes and sketches of graph_executions from which
-- the fleet's cells are judged without reading them, and by which queries find the few executions that they do have to read.
-- A row is what one insert brought; the engine adds rows up in its own time, and so does every reader (GROUP BY).
-- docs/decisions/0011-rollup-by-cell.md has why, and what it costs.
CREATE TABLE IF NOT EXISTS cell_graphs
(
    received_on Date,
    service_instance_id LowCardinality(String),
    window_started_at DateTime('UTC'),
    cell String,
    host_name LowCardinality(String),
    engine_package LowCardinality(String),
    engine_recipe LowCardinality(String),
    cell_arm LowCardinality(String),
    graph_name LowCardinality(String),
    graph_kind LowCardinality(String),

    service_name SimpleAggregateFunction(any, String),
    engine_name SimpleAggregateFunction(any, String),
    engine_version SimpleAggregateFunction(any, String),
    engine_tensor_parallel SimpleAggregateFunction(any, Nullable(Int64)),
    gpu_ids SimpleAggregateFunction(any, Array(String)),
    engine_attributes SimpleAggregateFunction(any, Map(String, String)),
    cell_id SimpleAggregateFunction(any, String),
    cell_position SimpleAggregateFunction(any, Nullable(Int64)),
    cell_concurrency SimpleAggregateFunction(any, Nullable(Int64)),
    -- The cost model of the latest execution that names one.
    cost_model_latest SimpleAggregateFunction(max, Tuple(DateTime64(9, 'UTC'), String)),

    first_started_at SimpleAggregateFunction(min, DateTime64(9, 'UTC')),
    last_started_at SimpleAggregateFunction(max, DateTime64(9, 'UTC')),
    last_ended_at SimpleAggregateFunction(max, DateTime64(9, 'UTC')),
    last_received_at SimpleAggregateFunction(max, DateTime64(3, 'UTC')),
    -- The latest submission, or the arrival where that is earlier: a clock that is ahead does not reach the future.
    newest_at SimpleAggregateFunction(max, DateTime64(9, 'UTC')),

    executions SimpleAggregateFunction(sum, UInt64),
    sequence_first SimpleAggregateFunction(min, Int64),
    sequence_last SimpleAggregateFunction(max, Int64),
    -- Sums of the numbers and of their squares, modulo 2^64: where they add up, nothing is missing.
    sequence_sum SimpleAggregateFunction(sum, UInt64),
    sequence_squares_sum SimpleAggregateFunction(sum, UInt64),
    sequences AggregateFunction(groupBitmap, UInt64),
    gpu_time_ns SimpleAggregateFunction(sum, Int64),
    ordinary_executions SimpleAggregateFunction(sum, UInt64),
    ordinary_wall_time_ns SimpleAggregateFunction(sum, Int64),
    -- NULL where none of them says how many: of none emitted it is 0.
    tokens_emitted SimpleAggregateFunction(sum, Nullable(Int64)),

    -- The median and the 90th percentile, each within 1 %.
    gpu_time_sketch AggregateFunction(quantilesDD(0.01, 0.5, 0.9), Int64),
    -- Of the ordinary decoding decisions for this graph: the highest charge of each candidate, and the highest cost at which
    -- it would have drawn level with the graph chosen.
    charged_max_ns SimpleAggregateFunction(maxMap, Tuple(Array(String), Array(Int64))),
    level_max_ns SimpleAggregateFunction(maxMap, Tuple(Array(String), Array(Float64))),
    promising_candidates SimpleAggregateFunction(groupUniqArrayArray, Array(String)),

    INDEX window_minmax window_started_at TYPE minmax GRANULARITY 1
)
ENGINE = AggregatingMergeTree
PARTITION BY received_on
ORDER BY (service_instance_id, window_started_at, cell, graph_name, graph_kind, host_name, engine_package, engine_recipe, cell_arm, received_on)
TTL received_on + INTERVAL 180 DAY
SETTINGS non_replicated_deduplication_window = 10000, ttl_only_drop_parts = 1, index_granularity = 256
