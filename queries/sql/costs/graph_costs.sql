-- question: What does each graph really cost on each host and package, and what does the scheduler believe?
-- uses: selected
-- parameter graph: String = '' | One graph; '' is any.
-- parameter by_cell: Bool = false | One row for each cell of each instance instead of all of them together.
-- parameter limit: UInt64 = 10000 | At most so many rows.
-- column engine_name [] | Engine.
-- column host_name [] | Host.
-- column engine_package [] | Build under test.
-- column service_instance_id [] | The engine instance, where by_cell is set.
-- column cell [] | The cell, where by_cell is set.
-- column graph_name [] | The graph.
-- column graph_kind [] | What it computes.
-- column executions [executions] | Stored executions, all purposes.
-- column gpu_time_median_ns [ns] | Median GPU time.
-- column gpu_time_p10_ns [ns] | 10th percentile of GPU time.
-- column gpu_time_p90_ns [ns] | 90th percentile of GPU time.
-- column gpu_time_p99_ns [ns] | 99th percentile of GPU time.
-- column wall_time_median_ns [ns] | Median wall time.
-- column drained_executions [executions] | Executions submitted to an empty queue while the engine had work.
-- column handoff_median_ns [ns] | Median handoff of those: wall time - GPU time; empty without any.
-- column estimate_mean_ns [ns] | Mean of what the scheduler charged when it chose the graph.
-- column estimate_to_gpu_time [ratio] | estimate_mean_ns / gpu_time_median_ns.
-- column idle_gap_s [s] | GPU idle time before its executions, the engine's own idleness left out.
-- column tokens_per_execution [tokens] | Mean tokens emitted.
-- table: host_name, engine_package, cell, graph_name, executions, gpu_time_median_ns, gpu_time_p90_ns, wall_time_median_ns, handoff_median_ns, estimate_mean_ns, estimate_to_gpu_time, idle_gap_s
-- example: tachograph query graph_costs --param host=gpu-node-024 --param by_cell=true
SELECT
    engine_name,
    host_name,
    engine_package,
    if({by_cell:Bool}, toString(s.service_instance_id), '') AS service_instance_id,
    if({by_cell:Bool}, s.cell, '') AS cell,
    graph_name,
    graph_kind,
    count() AS executions,
    quantileExact(0.5)(graph_gpu_time_ns) AS gpu_time_median_ns,
    quantileExact(0.1)(graph_gpu_time_ns) AS gpu_time_p10_ns,
    quantileExact(0.9)(graph_gpu_time_ns) AS gpu_time_p90_ns,
    quantileExact(0.99)(graph_gpu_time_ns) AS gpu_time_p99_ns,
    quantileExact(0.5)(graph_wall_time_ns) AS wall_time_median_ns,
    countIf(graph_queue_depth = 0 AND NOT graph_after_idle) AS drained_executions,
    if(drained_executions > 0,
        quantileExactIf(0.5)(graph_wall_time_ns - graph_gpu_time_ns, graph_queue_depth = 0 AND NOT graph_after_idle), NULL) AS handoff_median_ns,
    avg(scheduler_estimate_ns) AS estimate_mean_ns,
    estimate_mean_ns / gpu_time_median_ns AS estimate_to_gpu_time,
    sumIf(greatest(graph_wall_time_ns - graph_gpu_time_ns, 0), NOT graph_after_idle) / 1e9 AS idle_gap_s,
    avg(batch_tokens_emitted) AS tokens_per_execution
FROM selected AS s
WHERE {graph:String} = '' OR graph_name = {graph:String}
GROUP BY engine_name, host_name, engine_package, service_instance_id, cell, graph_name, graph_kind
ORDER BY host_name, engine_package, service_instance_id, cell, graph_kind, graph_name
LIMIT {limit:UInt64}
