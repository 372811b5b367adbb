-- question: Which graphs run slower or faster on the GPU than they used to on the same engine?
-- uses: cells_nearby
-- parameter arm: String = '' | cell_arm; '' is any.
-- parameter cell: String = '' | One cell: the benchmark's cell_id, or the start of a 30 s window in Unix seconds; '' is any.
-- parameter limit: UInt64 = 10000 | At most so many rows, the largest drift first.
-- column service_instance_id [] | The engine instance.
-- column host_name [] | Host.
-- column engine_package [] | Build under test.
-- column graph_name [] | The graph.
-- column executions [executions] | Its executions in the time asked for.
-- column gpu_time_mean_ns [ns] | Mean of their GPU time.
-- column executions_before [executions] | Its executions in the 30 s windows before, as far back as history_s.
-- column gpu_time_mean_before_ns [ns] | Mean of theirs; empty without any.
-- column drift_percent [%] | How much longer the later ones take.
-- column drift_in_spreads [ratio] | That difference, in median absolute deviations of the means of the 30 s windows before; empty below three of them.
-- table: host_name, engine_package, graph_name, executions, gpu_time_mean_ns, gpu_time_mean_before_ns, drift_percent, drift_in_spreads, executions_before
-- example: tachograph query gpu_time_drift --param last_s=300 --param history_s=86400
SELECT
    * EXCEPT (means_before_ns),
    if(length(means_before_ns) >= 3,
        (gpu_time_mean_ns - gpu_time_mean_before_ns) / nullIf(arrayReduce('quantileExact(0.5)',
            arrayMap(mean -> abs(mean - arrayReduce('quantileExact(0.5)', means_before_ns)), means_before_ns)), 0),
        NULL) AS drift_in_spreads
FROM
(
    SELECT
        service_instance_id,
        any(host_name) AS host_name,
        any(engine_package) AS engine_package,
        graph_name,
        sumIf(n, is_asked) AS executions,
        sumIf(gpu_ns, is_asked) / executions AS gpu_time_mean_ns,
        sumIf(n, NOT is_asked) AS executions_before,
        sumIf(gpu_ns, NOT is_asked) / nullIf(executions_before, 0) AS gpu_time_mean_before_ns,
        100 * (gpu_time_mean_ns / gpu_time_mean_before_ns - 1) AS drift_percent,
        groupArrayIf(gpu_ns / n, NOT is_asked) AS means_before_ns
    FROM
    (
        SELECT
            service_instance_id,
            window_started_at,
            graph_name,
            any(host_name) AS host_name,
            any(engine_package) AS engine_package,
            window_started_at > subtractSeconds(asked.since, 30) AS is_asked,
            sum(executions) AS n,
            sum(gpu_time_ns) AS gpu_ns
        FROM cells_nearby
        WHERE window_started_at < asked.until
            AND (NOT is_asked OR (({arm:String} = '' OR cell_arm = {arm:String}) AND ({cell:String} = '' OR cell = {cell:String})))
        GROUP BY service_instance_id, window_started_at, graph_name
    )
    GROUP BY service_instance_id, graph_name
    HAVING executions > 0
)
ORDER BY abs(ifNull(drift_percent, 0)) DESC, service_instance_id, graph_name
LIMIT {limit:UInt64}
