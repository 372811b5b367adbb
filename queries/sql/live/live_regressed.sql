-- question: Which graphs run slower on the GPU now than ever before on the same engine: as the hours were settled last?
-- parameter at: DateTime64(9, 'UTC') = now | The instant to judge by, on the collector's clock: what arrived later is not known yet.
-- parameter lookback_s: UInt32 = 3600 | How long before `at` to look, in s.
-- parameter span_s: UInt32 = 300 | Now: so long before an engine's newest 30 s window, in s. What came before it, as far back as lookback_s, is its history.
-- parameter recent_s: UInt32 = 180 | Without a complete cell that arrived within this, nothing is known of an engine, in s.
-- parameter windows_before_min: UInt32 = 10 | No verdict with a history of fewer 30 s windows that executed the graph.
-- parameter executions_min: UInt32 = 20 | Windows with fewer executions of the graph do not count.
-- parameter slowed_above: Float64 = 0.02 | A graph that is slower by more than this fraction is not judged: its batch may explain it, which only executions tell.
-- parameter unsettled_for_s: UInt32 = 120 | What arrived may wait so long to be settled, in s; `judged` tells where it waits longer.
-- parameter service_instance_id: String = '' | One engine instance; '' is any.
-- parameter limit: UInt64 = 10000 | At most so many graphs, the most slowed first.
-- column service_instance_id [] | The engine instance.
-- column host_name [] | Host.
-- column engine_package [] | Build under test.
-- column graph_name [] | The graph.
-- column slowed_fraction [fraction] | gpu_time_now_ns / gpu_time_history_ns - 1; below 0 where it runs as it used to.
-- column gpu_time_now_ns [ns] | Median, over the windows of now, of the median GPU time (within 1 %).
-- column gpu_time_history_ns [ns] | 95th percentile, over the windows before, of the same: what it cost at its slowest.
-- column windows_now [windows] | Windows of now.
-- column windows_before [windows] | Windows before.
-- column judged [] | What arrived was settled within unsettled_for_s, and nothing looks slower than slowed_above; else `regressed_graphs` knows more, and the row may say nothing, or what the batch explains.
-- table: host_name, graph_name, slowed_fraction, gpu_time_now_ns, gpu_time_history_ns, windows_now, windows_before
-- example: tachograph query live_regressed --param lookback_s=21600
SELECT
    service_instance_id,
    any(h.host_name) AS host_name,
    any(h.engine_package) AS engine_package,
    graph_name,
    gpu_time_now_ns / gpu_time_history_ns - 1 AS slowed_fraction,
    quantileExactIf(0.5)(median_ns, is_counted AND is_now) AS gpu_time_now_ns,
    quantileExactIf(0.95)(median_ns, is_counted AND NOT is_now) AS gpu_time_history_ns,
    countIf(is_counted AND is_now) AS windows_now,
    countIf(is_counted AND NOT is_now) AS windows_before,
    toBool(any(h.is_settled) AND ifNull(slowed_fraction <= {slowed_above:Float64}, true)) AS judged
FROM
(
    SELECT
        e.service_instance_id AS service_instance_id,
        e.host_name AS host_name,
        e.engine_package AS engine_package,
        g.graph_name AS graph_name,
        subtractSeconds(e.newest_window_at, {span_s:UInt32}) AS now_since,
        e.first_received_at > subtractSeconds({at:DateTime64(9, 'UTC')}, {unsettled_for_s:UInt32})
            OR max(g.last_received_at) OVER (PARTITION BY e.service_instance_id) > subtractSeconds(e.last_received_at, {unsettled_for_s:UInt32}) AS is_settled,
        windows_started_at, windows_received_at, executions, gpu_time_medians_ns
    FROM
    (
        SELECT
            service_instance_id,
            any(w.host_name) AS host_name,
            any(w.engine_package) AS engine_package,
            max(window_started_at) AS newest_window_at,
            min(w.last_received_at) AS first_received_at,
            max(w.last_received_at) AS last_received_at
        FROM cell_windows AS w
        WHERE received_on BETWEEN toDate(subtractSeconds({at:DateTime64(9, 'UTC')}, {recent_s:UInt32})) AND toDate({at:DateTime64(9, 'UTC')})
            AND w.last_received_at > subtractSeconds({at:DateTime64(9, 'UTC')}, {recent_s:UInt32})
            AND w.last_received_at <= {at:DateTime64(9, 'UTC')}
            AND ({service_instance_id:String} = '' OR service_instance_id = {service_instance_id:String})
        GROUP BY service_instance_id
    ) AS e
    LEFT JOIN
    (
        SELECT service_instance_id, graph_name, last_received_at, windows_started_at, windows_received_at, executions, gpu_time_medians_ns
        FROM graph_hours FINAL
        WHERE received_on >= toDate(subtractSeconds({at:DateTime64(9, 'UTC')}, {lookback_s:UInt32}))
            AND last_received_at > subtractSeconds({at:DateTime64(9, 'UTC')}, {lookback_s:UInt32})
    ) AS g ON g.service_instance_id = e.service_instance_id
) AS h
LEFT ARRAY JOIN
    windows_started_at AS window_started_at,
    gpu_time_medians_ns AS median_ns,
    arrayMap((n, received_at) -> n >= {executions_min:UInt32} AND received_at <= {at:DateTime64(9, 'UTC')}
        AND received_at > subtractSeconds({at:DateTime64(9, 'UTC')}, {lookback_s:UInt32}), executions, windows_received_at) AS is_counted,
    arrayMap(window -> window >= now_since, windows_started_at) AS is_now
GROUP BY service_instance_id, graph_name
HAVING NOT any(h.is_settled) OR (windows_now >= 3 AND windows_before >= {windows_before_min:UInt32})
ORDER BY slowed_fraction DESC, service_instance_id, graph_name
LIMIT {limit:UInt64}
