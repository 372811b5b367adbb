-- question: How long did the GPU run nothing, and why: host late, feedback, the engine's own idleness, or unknown?
-- uses: idle_gaps
-- parameter limit: UInt64 = 10000 | At most so many rows, the most idle first.
-- column service_instance_id [] | The engine instance.
-- column host_name [] | Host.
-- column engine_package [] | Build under test.
-- column idle_cause [] | `after_idle`: the engine had no work. `feedback`: the execution before had to be seen by the host first. `host_late`: the queue ran empty for no such reason. `unknown`: executions in between were lost, or the queue depth was not recorded or not 0.
-- column idle_gaps [gaps] | Stretches in which the device ran nothing.
-- column idle_s [s] | Sum of them.
-- column idle_median_ns [ns] | Median.
-- column idle_p99_ns [ns] | 99th percentile.
-- column idle_max_ns [ns] | The longest.
-- table: host_name, engine_package, idle_cause, idle_gaps, idle_s, idle_median_ns, idle_p99_ns, idle_max_ns, service_instance_id
-- example: tachograph query gpu_idle --param host=gpu-node-024
SELECT
    service_instance_id,
    any(host_name) AS host_name,
    any(engine_package) AS engine_package,
    idle_cause,
    count() AS idle_gaps,
    sum(idle_ns) / 1e9 AS idle_s,
    (quantilesExact(0.5, 0.99, 1)(idle_ns) AS idles_ns)[1] AS idle_median_ns,
    idles_ns[2] AS idle_p99_ns,
    idles_ns[3] AS idle_max_ns
FROM idle_gaps
GROUP BY service_instance_id, idle_cause
ORDER BY idle_s DESC, service_instance_id, idle_cause
LIMIT {limit:UInt64}
