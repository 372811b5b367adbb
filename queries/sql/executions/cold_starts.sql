-- question: How slow were each graph's first executions (cold start, capture), compared with those after?
-- uses: selected
-- parameter first_executions: UInt64 = 3 | So many executions of a graph count as its first.
-- parameter limit: UInt64 = 10000 | At most so many rows, the slowest start first.
-- column service_instance_id [] | The engine instance.
-- column host_name [] | Host.
-- column engine_package [] | Build under test.
-- column graph_name [] | The graph.
-- column first_started_at [time] | Its first submission in the time asked for.
-- column after_engine_start_s [s] | From the instance's first submission in that time to it.
-- column from_engine_start [] | The record begins with the engine run (graph_sequence 0 or 1); else "first" only means first seen.
-- column executions [executions] | Stored executions of the graph.
-- column first_gpu_time_ns [ns] | GPU time of the very first.
-- column first_wall_time_ns [ns] | Longest wall time of the first ones, the engine's own idleness left out; empty where every one came after idleness.
-- column gpu_time_median_ns [ns] | Median GPU time of the later ones; empty without any.
-- column cold_excess_s [s] | Wall time of the first ones beyond the median wall time of the later ones.
-- table: host_name, graph_name, first_started_at, after_engine_start_s, first_gpu_time_ns, gpu_time_median_ns, first_wall_time_ns, cold_excess_s, executions, from_engine_start
-- example: tachograph query cold_starts --param host=gpu-node-024
SELECT
    service_instance_id,
    any(host_name) AS host_name,
    any(engine_package) AS engine_package,
    graph_name,
    min(started_at) AS first_started_at,
    (toUnixTimestamp64Nano(first_started_at) - toUnixTimestamp64Nano(any(instance_started_at))) / 1e9 AS after_engine_start_s,
    toBool(any(instance_sequence) <= 1) AS from_engine_start,
    count() AS executions,
    argMin(graph_gpu_time_ns, nth) AS first_gpu_time_ns,
    if(countIf(is_first AND NOT graph_after_idle) > 0, maxIf(graph_wall_time_ns, is_first AND NOT graph_after_idle), NULL) AS first_wall_time_ns,
    if(countIf(NOT is_first) > 0, quantileExactIf(0.5)(graph_gpu_time_ns, NOT is_first), NULL) AS gpu_time_median_ns,
    if(countIf(NOT is_first AND NOT graph_after_idle) > 0,
        sumIf(graph_wall_time_ns, is_first AND NOT graph_after_idle) - countIf(is_first AND NOT graph_after_idle) * quantileExactIf(0.5)(graph_wall_time_ns, NOT is_first AND NOT graph_after_idle),
        NULL) / 1e9 AS cold_excess_s
FROM
(
    SELECT
        *,
        row_number() OVER (PARTITION BY service_instance_id, graph_name ORDER BY started_at, graph_sequence) AS nth,
        nth <= {first_executions:UInt64} AS is_first,
        min(started_at) OVER (PARTITION BY service_instance_id) AS instance_started_at,
        min(graph_sequence) OVER (PARTITION BY service_instance_id) AS instance_sequence
    FROM (
        SELECT service_instance_id, host_name, engine_package, graph_name, started_at, graph_sequence, graph_gpu_time_ns, graph_wall_time_ns, graph_after_idle
        FROM selected
    )
)
GROUP BY service_instance_id, graph_name
ORDER BY cold_excess_s DESC NULLS LAST, service_instance_id, graph_name
LIMIT {limit:UInt64}
