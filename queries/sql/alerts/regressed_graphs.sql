-- question: Which graphs run slower on the GPU now than ever before on the same engine?
-- uses: graphs_compared
-- parameter at: DateTime64(9, 'UTC') = now | The instant to judge by, on the collector's clock: what arrived later is not known yet.
-- parameter lookback_s: UInt32 = 3600 | How long before `at` to look, in s.
-- parameter slowed_above: Float64 = 0.02 | Of a graph that is slower by more than this fraction whatever the batch, the executions are read, and where its times go with batch_lanes only like batches (within a tenth) are compared.
-- parameter limit: UInt64 = 10000 | At most so many graphs, the most slowed first.
-- column service_instance_id [] | The engine instance.
-- column host_name [] | Host.
-- column engine_package [] | Build under test.
-- column graph_name [] | The graph.
-- column slowed_fraction [fraction] | gpu_time_now_ns / gpu_time_history_ns - 1; below 0 where it runs as it used to; empty where that cannot be told: the batch of now has no history, or its history was at other sizes.
-- column gpu_time_now_ns [ns] | Median, over the windows of now, of the median GPU time (within 1 %); at the batch size that most of them had and that has a history, where times go with it.
-- column gpu_time_history_ns [ns] | 95th percentile, over the windows before, of the same at the same: what it cost at its slowest.
-- column windows_now [windows] | Windows of now.
-- column windows_before [windows] | Windows before.
-- table: host_name, graph_name, slowed_fraction, gpu_time_now_ns, gpu_time_history_ns, windows_now, windows_before
-- example: tachograph query regressed_graphs --param lookback_s=21600
SELECT
    g.1 AS service_instance_id,
    g.3 AS host_name,
    g.4 AS engine_package,
    g.2 AS graph_name,
    gpu_time_now_ns / gpu_time_history_ns - 1 AS slowed_fraction,
    if(batches_matter AND batch_is_known, batch.2, g.6) AS gpu_time_now_ns,
    multiIf(NOT batches_matter, g.7, batch_is_known, batch.3, NULL) AS gpu_time_history_ns,
    g.8 AS windows_now,
    g.9 AS windows_before
FROM (SELECT arrayJoin(graphs_compared) AS g) AS c
LEFT JOIN
(
    SELECT
        service_instance_id,
        graph_name,
        count() > 1 AND (countIf(before > 0) < 2 OR maxIf(usual_ns, before > 0) > 1.025 * minIf(usual_ns, before > 0)) AS batches_matter,
        max((if(before > 0, now, 0), now_ns, slowest_ns)) AS batch,
        batch.1 > 0 AS batch_is_known
    FROM
    (
        SELECT
            service_instance_id,
            graph_name,
            countIf(is_now) AS now,
            countIf(NOT is_now) AS before,
            toFloat64(quantileExactIf(0.5)(median_ns, is_now)) AS now_ns,
            toFloat64(quantileExactIf(0.5)(median_ns, NOT is_now)) AS usual_ns,
            toFloat64(quantileExactIf(0.95)(median_ns, NOT is_now)) AS slowest_ns
        FROM
        (
            SELECT
                service_instance_id,
                graph_name,
                round(8 * log2(1 + ifNull(batch_lanes, 0))) AS like_lanes,
                window_started_at >= any(s.slowed.5) AS is_now,
                toStartOfInterval(started_at, INTERVAL 30 SECOND) AS window_started_at,
                quantileExact(0.5)(graph_gpu_time_ns) AS median_ns
            FROM graph_executions AS e
            INNER JOIN (SELECT arrayJoin(graphs_compared) AS slowed) AS s ON s.slowed.1 = e.service_instance_id AND s.slowed.2 = e.graph_name
            WHERE service_instance_id IN (SELECT arrayJoin(arrayMap(one -> one.1, arrayFilter(one -> one.6 > one.7 * (1 + {slowed_above:Float64}), graphs_compared))))
                AND s.slowed.6 > s.slowed.7 * (1 + {slowed_above:Float64})
                AND toDate(received_at) >= toDate(subtractSeconds({at:DateTime64(9, 'UTC')}, {lookback_s:UInt32}))
                AND received_at > subtractSeconds({at:DateTime64(9, 'UTC')}, {lookback_s:UInt32})
                AND received_at <= {at:DateTime64(9, 'UTC')}
            GROUP BY service_instance_id, graph_name, like_lanes, window_started_at
            HAVING count() >= 5
        )
        GROUP BY service_instance_id, graph_name, like_lanes
    )
    GROUP BY service_instance_id, graph_name
) AS l ON l.service_instance_id = g.1 AND l.graph_name = g.2
ORDER BY slowed_fraction DESC, service_instance_id, graph_name
LIMIT {limit:UInt64}
