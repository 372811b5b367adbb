-- question: How long is the handoff of drained executions, by graph and by why the GPU had to wait?
-- uses: selected
-- parameter limit: UInt64 = 10000 | At most so many rows.
-- column host_name [] | Host.
-- column engine_package [] | Build under test.
-- column graph_name [] | The drained graph.
-- column awaited_reason [] | Completion feedback reason of the drained execution itself; '' where it needs none.
-- column drained_executions [executions] | Executions submitted to an empty queue while the engine had work.
-- column handoff_median_ns [ns] | Median handoff: wall time - GPU time.
-- column handoff_p90_ns [ns] | 90th percentile.
-- column handoff_p99_ns [ns] | 99th percentile.
-- column handoff_max_ns [ns] | The longest.
-- column handoff_s [s] | Sum of them.
-- table: host_name, engine_package, graph_name, awaited_reason, drained_executions, handoff_median_ns, handoff_p90_ns, handoff_p99_ns, handoff_max_ns, handoff_s
-- example: tachograph query handoffs --param host=gpu-node-024
SELECT
    host_name,
    engine_package,
    graph_name,
    graph_completion_feedback_reason AS awaited_reason,
    count() AS drained_executions,
    (quantilesExact(0.5, 0.9, 0.99, 1)(graph_wall_time_ns - graph_gpu_time_ns) AS handoffs_ns)[1] AS handoff_median_ns,
    handoffs_ns[2] AS handoff_p90_ns,
    handoffs_ns[3] AS handoff_p99_ns,
    handoffs_ns[4] AS handoff_max_ns,
    sum(greatest(graph_wall_time_ns - graph_gpu_time_ns, 0)) / 1e9 AS handoff_s
FROM selected
WHERE graph_queue_depth = 0 AND NOT graph_after_idle
GROUP BY host_name, engine_package, graph_name, awaited_reason
ORDER BY host_name, engine_package, graph_name, awaited_reason
LIMIT {limit:UInt64}
