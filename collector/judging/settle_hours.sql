-- Settles the hours between `from` and `to` of engines whose executions are not those that the latest settlement counts:
-- each at most once in so many seconds. An hour is written anew as a whole.
-- Parameters: from, to, every_s.
INSERT INTO graph_hours
(
    received_on, hour_started_at, service_instance_id, graph_name, host_name, engine_package, engine_recipe,
    settled_at, last_received_at, windows_started_at, windows_received_at, executions, gpu_times_ns, gpu_time_medians_ns
)
SELECT
    toDate(last_received_at) AS received_on,
    hour_started_at,
    service_instance_id,
    graph_name,
    any(host) AS host_name,
    any(package) AS engine_package,
    any(recipe) AS engine_recipe,
    now64(3, 'UTC') AS settled_at,
    max(received_at) AS last_received_at,
    (arraySort(groupArray((window_started_at, received_at, n, gpu_ns, median_ns))) AS windows).1 AS windows_started_at,
    windows.2 AS windows_received_at,
    windows.3 AS executions,
    windows.4 AS gpu_times_ns,
    windows.5 AS gpu_time_medians_ns
FROM
(
    SELECT
        service_instance_id,
        window_started_at,
        toStartOfHour(window_started_at) AS hour_started_at,
        graph_name,
        any(g.host_name) AS host,
        any(g.engine_package) AS package,
        any(g.engine_recipe) AS recipe,
        max(last_received_at) AS received_at,
        sum(g.executions) AS n,
        sum(g.gpu_time_ns) AS gpu_ns,
        quantilesDDMerge(0.01, 0.5, 0.9)(gpu_time_sketch)[1] AS median_ns
    FROM cell_graphs AS g
    WHERE window_started_at > subtractHours({from:DateTime64(9, 'UTC')}, 1)
        AND toStartOfHour(window_started_at) <= {to:DateTime64(9, 'UTC')}
        AND (service_instance_id, toStartOfHour(window_started_at)) IN
        (
            SELECT service_instance_id, hour
            FROM
            (
                SELECT
                    service_instance_id, toStartOfHour(window_started_at) AS hour,
                    sum(executions) AS stored, 0 AS counted, toDateTime64(0, 3, 'UTC') AS counted_at
                FROM cell_windows
                WHERE toStartOfHour(window_started_at) >= toStartOfHour({from:DateTime64(9, 'UTC')})
                    AND toStartOfHour(window_started_at) <= {to:DateTime64(9, 'UTC')}
                GROUP BY service_instance_id, hour
                UNION ALL
                SELECT service_instance_id, hour_started_at, 0, arraySum(h.executions), h.settled_at
                FROM graph_hours AS h FINAL
                WHERE hour_started_at >= toStartOfHour({from:DateTime64(9, 'UTC')})
                    AND hour_started_at <= {to:DateTime64(9, 'UTC')}
            )
            GROUP BY service_instance_id, hour
            HAVING sum(stored) != sum(counted) AND max(counted_at) <= subtractSeconds(now64(3, 'UTC'), {every_s:UInt32})
        )
    GROUP BY service_instance_id, window_started_at, graph_name
)
GROUP BY service_instance_id, hour_started_at, graph_name
