-- row: Every graph heard of lately, with what it takes on the GPU now and what it took before, whatever the batch: instance, graph, host, build, since when now is, the two times, and the windows of each.
-- uses: arrived_graphs, arrived_engines
-- parameter at: DateTime64(9, 'UTC') = now | The instant to judge by, on the collector's clock: what arrived later is not known yet.
-- parameter span_s: UInt32 = 300 | Now: so long before an engine's newest 30 s window, in s. What came before it, as far back as lookback_s, is its history.
-- parameter recent_s: UInt32 = 180 | Without a complete cell that arrived within this, nothing is known of an engine, in s.
-- parameter windows_before_min: UInt32 = 10 | No verdict with a history of fewer 30 s windows that executed the graph.
-- parameter executions_min: UInt32 = 20 | Windows with fewer executions of the graph do not count.
SELECT groupArray((service_instance_id, graph_name, host_name, engine_package, now_since, gpu_time_now_ns, gpu_time_history_ns, windows_now, windows_before))
FROM
(
    SELECT
        toString(w.service_instance_id) AS service_instance_id,
        toString(w.graph_name) AS graph_name,
        toString(any(w.host_name)) AS host_name,
        toString(any(w.engine_package)) AS engine_package,
        any(w.now_since) AS now_since,
        quantileExactIf(0.5)(median_ns, is_now) AS gpu_time_now_ns,
        quantileExactIf(0.95)(median_ns, NOT is_now) AS gpu_time_history_ns,
        countIf(is_now) AS windows_now,
        countIf(NOT is_now) AS windows_before
    FROM
    (
        SELECT
            a.service_instance_id AS service_instance_id,
            window_started_at,
            graph_name,
            any(a.host_name) AS host_name,
            any(a.engine_package) AS engine_package,
            subtractSeconds(any(e.newest_window_at), {span_s:UInt32}) AS now_since,
            window_started_at >= now_since AS is_now,
            quantilesDDMerge(0.01, 0.5, 0.9)(gpu_time_sketch)[1] AS median_ns
        FROM arrived_graphs AS a
        INNER JOIN arrived_engines AS e ON e.service_instance_id = a.service_instance_id
        WHERE e.last_received_at > subtractSeconds({at:DateTime64(9, 'UTC')}, {recent_s:UInt32})
        GROUP BY service_instance_id, window_started_at, graph_name
        HAVING sum(a.executions) >= {executions_min:UInt32}
    ) AS w
    GROUP BY service_instance_id, graph_name
    HAVING windows_now >= 3 AND windows_before >= {windows_before_min:UInt32}
)
