-- question: Which graphs run slower or faster on the GPU than they used to on the same engine: as the hours were settled last?
-- uses: engines_since
-- parameter to: DateTime64(9, 'UTC') = 2200-01-01 00:00:00 | Executions submitted before this instant.
-- parameter history_s: UInt32 = 600 | How long before the time asked for to look for what an engine can execute, what a graph costs and since when it decodes plainly, in s. A cell that began before the time asked for counts from its start, at most from there.
-- parameter service_instance_id: String = '' | One engine instance; '' is any.
-- parameter host: String = '' | host_name; '' is any.
-- parameter package: String = '' | engine_package; '' is any.
-- parameter recipe: String = '' | engine_recipe; '' is any.
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
-- example: tachograph query live_drift --param last_s=3600 --param history_s=604800
SELECT
    service_instance_id,
    any(h.host_name) AS host_name,
    any(h.engine_package) AS engine_package,
    graph_name,
    sum(arraySum(arrayMap((n, place) -> if(place = 2, n, 0), ns, places))) AS executions,
    sum(arraySum(arrayMap((gpu_ns, place) -> if(place = 2, gpu_ns, 0), gpu_times, places))) / executions AS gpu_time_mean_ns,
    sum(arraySum(arrayMap((n, place) -> if(place = 1, n, 0), ns, places))) AS executions_before,
    sum(arraySum(arrayMap((gpu_ns, place) -> if(place = 1, gpu_ns, 0), gpu_times, places))) / nullIf(executions_before, 0) AS gpu_time_mean_before_ns,
    100 * (gpu_time_mean_ns / gpu_time_mean_before_ns - 1) AS drift_percent,
    if(length(groupArrayArray(arrayFilter((mean, place) -> place = 1, arrayMap((gpu_ns, n) -> gpu_ns / n, gpu_times, ns), places)) AS means_before_ns) >= 3,
        (gpu_time_mean_ns - gpu_time_mean_before_ns) / nullIf(arrayReduce('quantileExact(0.5)',
            arrayMap(mean -> abs(mean - arrayReduce('quantileExact(0.5)', means_before_ns)), means_before_ns)), 0),
        NULL) AS drift_in_spreads
FROM
(
    SELECT
        service_instance_id, host_name, engine_package, graph_name, executions AS ns, gpu_times_ns AS gpu_times,
        -- 2 for a window of the time asked for, 1 for one before it, 0 for any other.
        arrayMap(window -> multiIf(window >= {to:DateTime64(9, 'UTC')} OR window <= subtractSeconds(engines_since, {history_s:UInt32} + 30), 0,
            window > subtractSeconds(engines_since, 30), 2, 1), windows_started_at) AS places
    FROM graph_hours FINAL
    WHERE hour_started_at > subtractSeconds(engines_since, {history_s:UInt32} + 3630)
        AND hour_started_at < {to:DateTime64(9, 'UTC')}
        AND ({service_instance_id:String} = '' OR service_instance_id = {service_instance_id:String})
        AND ({host:String} = '' OR host_name = {host:String})
        AND ({package:String} = '' OR engine_package = {package:String})
        AND ({recipe:String} = '' OR engine_recipe = {recipe:String})
) AS h
GROUP BY service_instance_id, graph_name
HAVING executions > 0
ORDER BY abs(ifNull(drift_percent, 0)) DESC, service_instance_id, graph_name
LIMIT {limit:UInt64}
