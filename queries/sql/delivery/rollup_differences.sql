-- question: Do the rollups say what the executions say: which 30 s of which engine differ, and in what?
-- uses: dropped_windows
-- parameter from: DateTime64(9, 'UTC') = -1d | From the 30 s window of this instant on.
-- parameter to: DateTime64(9, 'UTC') = 2200-01-01 00:00:00 | Before the 30 s window of this instant.
-- parameter service_instance_id: String = '' | One engine instance; '' is any.
-- parameter limit: UInt64 = 10000 | At most so many differences.
-- column service_instance_id [] | The engine instance.
-- column window_started_at [time] | The 30 s window; of `engine_half_hours` the half hour, of those that lie between `from` and `to`.
-- column rollup [] | The table that differs from graph_executions. A second of `engine_seconds` has 32 bits, and begins anew after 7 February 2106: it is not looked at of an engine whose clock has been beyond. Later windows are not looked at of any.
-- column executions_stored [executions] | What graph_executions has.
-- column executions_rolled_up [executions] | What the rollup has.
-- column differing [] | The counts, sums and extremes that differ. Where sampling dropped executions, only `executions`, and only where the rollup has fewer than are stored and were dropped together.
-- table: service_instance_id, window_started_at, rollup, executions_stored, executions_rolled_up, differing
-- example: tachograph query rollup_differences --param from=-30d
SELECT *
FROM
(
    SELECT
        service_instance_id,
        window_started_at,
        one.1 AS rollup,
        stored[1] AS executions_stored,
        one.2[1] AS executions_rolled_up,
        -- What sampling dropped is counted by rollups and no longer stored: there, only that a rollup lacks something can be said.
        -- By second, neither extremes nor sequence numbers are kept. An hour is settled after executions arrived: what a window
        -- has got since then is no difference.
        arrayFilter(
            (name, is_kept, figure, rolled_up) -> is_kept AND if(is_dropped, name = 'executions' AND rolled_up < figure + dropped_at_least, figure != rolled_up),
            ['executions', 'tokens', 'GPU time', 'plain wall time', 'speculative wall time', 'first submission', 'last submission', 'sequence numbers', 'sum of sequence numbers', 'sum of their squares', ''],
            arrayMap(place -> multiIf(rollup = 'engine_seconds', place <= 5, rollup = 'graph_hours', place IN (1, 3) AND one.2[11] = stored[11] AND stored[11] > 0, place <= 10), range(1, 12)),
            stored,
            one.2
        ) AS differing
    FROM
    (
        SELECT
            service_instance_id,
            window_started_at,
            arrayResize(anyIf(sums, source = 'graph_executions'), 11) AS stored,
            countIf(source = 'dropped_windows') > 0 AS is_dropped,
            sumIf(sums[1], source = 'dropped_windows') AS dropped_at_least,
            arrayMap(
                rollup -> (rollup, arrayResize(groupArrayIf(sums, source != 'graph_executions')[indexOf(groupArrayIf(source, source != 'graph_executions'), rollup)], 11)),
                ['cell_graphs', 'cell_windows', 'engine_seconds', 'graph_hours']
            ) AS rollups
        FROM
        (
            SELECT
                'graph_executions' AS source,
                service_instance_id,
                toStartOfInterval(e.started_at, INTERVAL 30 SECOND) AS window_started_at,
                [toInt64(count()), ifNull(sum(batch_tokens_emitted), 0), sum(graph_gpu_time_ns),
                    sumIf(graph_wall_time_ns, graph_purpose = 'ordinary' AND graph_kind = 'plain_decode'),
                    sumIf(graph_wall_time_ns, graph_purpose = 'ordinary' AND graph_kind = 'speculative'),
                    toUnixTimestamp64Nano(min(e.started_at)), toUnixTimestamp64Nano(max(e.started_at)), toInt64(uniqExact(graph_sequence)),
                    toInt64(sum(toUInt64(graph_sequence))), toInt64(sum(toUInt64(graph_sequence) * toUInt64(graph_sequence))),
                    toUnixTimestamp64Milli(max(received_at))] AS sums
            FROM graph_executions AS e
            WHERE e.started_at >= toStartOfInterval({from:DateTime64(9, 'UTC')}, INTERVAL 30 SECOND)
                AND e.started_at < toStartOfInterval({to:DateTime64(9, 'UTC')}, INTERVAL 30 SECOND)
                AND ({service_instance_id:String} = '' OR service_instance_id = {service_instance_id:String})
            GROUP BY service_instance_id, window_started_at
            UNION ALL
            SELECT
                'cell_graphs', service_instance_id, window_started_at,
                [toInt64(sum(g.executions)), ifNull(sum(g.tokens_emitted), 0), sum(g.gpu_time_ns),
                    sumIf(ordinary_wall_time_ns, graph_kind = 'plain_decode'), sumIf(ordinary_wall_time_ns, graph_kind = 'speculative'),
                    toUnixTimestamp64Nano(min(g.first_started_at)), toUnixTimestamp64Nano(max(g.last_started_at)), toInt64(groupBitmapMerge(g.sequences)),
                    toInt64(sum(g.sequence_sum)), toInt64(sum(g.sequence_squares_sum))]
            FROM cell_graphs AS g
            WHERE window_started_at >= toStartOfInterval({from:DateTime64(9, 'UTC')}, INTERVAL 30 SECOND)
                AND window_started_at < toStartOfInterval({to:DateTime64(9, 'UTC')}, INTERVAL 30 SECOND)
                AND ({service_instance_id:String} = '' OR service_instance_id = {service_instance_id:String})
            GROUP BY service_instance_id, window_started_at
            UNION ALL
            SELECT
                'cell_windows', service_instance_id, window_started_at,
                [toInt64(sum(w.executions)), ifNull(sum(w.tokens_emitted), 0), sum(w.gpu_time_ns),
                    sum(w.plain_wall_time_ns), sum(w.speculative_wall_time_ns),
                    toUnixTimestamp64Nano(min(w.first_started_at)), toUnixTimestamp64Nano(max(w.last_started_at)), toInt64(groupBitmapMerge(w.sequences)),
                    toInt64(sum(w.sequence_sum)), toInt64(sum(w.sequence_squares_sum))]
            FROM cell_windows AS w
            WHERE window_started_at >= toStartOfInterval({from:DateTime64(9, 'UTC')}, INTERVAL 30 SECOND)
                AND window_started_at < toStartOfInterval({to:DateTime64(9, 'UTC')}, INTERVAL 30 SECOND)
                AND ({service_instance_id:String} = '' OR service_instance_id = {service_instance_id:String})
            GROUP BY service_instance_id, window_started_at
            UNION ALL
            SELECT
                'engine_seconds', service_instance_id, toStartOfInterval(second_started_at, INTERVAL 30 SECOND) AS window_started_at,
                [toInt64(sum(s.executions)), ifNull(sum(s.tokens_emitted), 0), sum(s.gpu_time_ns), sum(s.plain_wall_time_ns), sum(s.speculative_wall_time_ns)]
            FROM engine_seconds AS s
            WHERE second_started_at >= toStartOfInterval({from:DateTime64(9, 'UTC')}, INTERVAL 30 SECOND)
                AND second_started_at < toStartOfInterval({to:DateTime64(9, 'UTC')}, INTERVAL 30 SECOND)
                AND ({service_instance_id:String} = '' OR service_instance_id = {service_instance_id:String})
            GROUP BY service_instance_id, window_started_at
            UNION ALL
            SELECT
                'graph_hours', service_instance_id, window_started_at,
                [toInt64(sum(n)), 0, sum(gpu_ns), 0, 0, 0, 0, 0, 0, 0, toUnixTimestamp64Milli(max(received_at))]
            FROM graph_hours AS h FINAL
            ARRAY JOIN h.windows_started_at AS window_started_at, h.executions AS n, h.gpu_times_ns AS gpu_ns, h.windows_received_at AS received_at
            WHERE window_started_at >= toStartOfInterval({from:DateTime64(9, 'UTC')}, INTERVAL 30 SECOND)
                AND window_started_at < toStartOfInterval({to:DateTime64(9, 'UTC')}, INTERVAL 30 SECOND)
                AND ({service_instance_id:String} = '' OR service_instance_id = {service_instance_id:String})
            GROUP BY service_instance_id, window_started_at
            UNION ALL
            SELECT 'dropped_windows', service_instance_id, dropped_window, [sum(dropped)]
            FROM dropped_windows
            WHERE dropped_window >= toStartOfInterval({from:DateTime64(9, 'UTC')}, INTERVAL 30 SECOND)
                AND dropped_window < toStartOfInterval({to:DateTime64(9, 'UTC')}, INTERVAL 30 SECOND)
            GROUP BY service_instance_id, dropped_window
        )
        GROUP BY service_instance_id, window_started_at
    )
    ARRAY JOIN rollups AS one
    WHERE notEmpty(differing)
        -- cell_windows puts whatever lies beyond 32 bits into the last window that they can tell.
        AND NOT (rollup = 'engine_seconds' AND service_instance_id IN (SELECT service_instance_id FROM cell_windows WHERE window_started_at = toDateTime(4294967295, 'UTC')))
    UNION ALL
    -- A half hour is settled as a whole after executions arrived: one that has got some since then is read window by window.
    SELECT
        service_instance_id,
        half_hour,
        'engine_half_hours',
        sumIf(sums[1], source = 'graph_executions') AS executions_stored,
        sumIf(sums[1], source = 'engine_half_hours') AS executions_rolled_up,
        arrayFilter(
            (name, figure, rolled_up) -> if(
                countIf(source = 'dropped_windows') > 0,
                name = 'executions' AND rolled_up < figure + sumIf(sums[1], source = 'dropped_windows'),
                figure != rolled_up
            ),
            ['executions', 'tokens', 'plain wall time', 'speculative wall time', 'first submission', 'last submission', 'last completion', 'cells', 'windows'],
            sumForEachIf(sums, source = 'graph_executions'),
            sumForEachIf(sums, source = 'engine_half_hours')
        ) AS differing
    FROM
    (
        SELECT
            'graph_executions' AS source,
            service_instance_id,
            toStartOfInterval(e.started_at, INTERVAL 30 MINUTE) AS half_hour,
            max(received_at) AS last_received_at,
            [toInt64(count()), ifNull(sum(batch_tokens_emitted), 0),
                sumIf(graph_wall_time_ns, graph_purpose = 'ordinary' AND graph_kind = 'plain_decode'),
                sumIf(graph_wall_time_ns, graph_purpose = 'ordinary' AND graph_kind = 'speculative'),
                toUnixTimestamp64Nano(min(e.started_at)), toUnixTimestamp64Nano(max(e.started_at)), toUnixTimestamp64Nano(max(addNanoseconds(e.started_at, duration_ns))),
                toInt64(uniqExact(cell)), toInt64(uniqExact(toStartOfInterval(e.started_at, INTERVAL 30 SECOND)))] AS sums
        FROM graph_executions AS e
        WHERE e.started_at >= {from:DateTime64(9, 'UTC')}
            AND e.started_at < {to:DateTime64(9, 'UTC')}
            AND ({service_instance_id:String} = '' OR service_instance_id = {service_instance_id:String})
        GROUP BY service_instance_id, half_hour
        UNION ALL
        SELECT
            'engine_half_hours', service_instance_id, half_hour_started_at, max(h.last_received_at),
            [toInt64(sum(h.executions)), ifNull(sum(cells_tokens), 0), sum(cells_plain_ns), sum(cells_speculative_ns),
                toUnixTimestamp64Nano(min(h.first_started_at)), toUnixTimestamp64Nano(max(h.last_started_at)), toUnixTimestamp64Nano(max(h.last_ended_at)),
                toInt64(sum(cells_within) + uniqExactIf(reaching_cell, reaching_cell != '')), toInt64(uniqExactArray(h.windows_started_at))]
        FROM engine_half_hours AS h FINAL
        WHERE half_hour_started_at >= {from:DateTime64(9, 'UTC')}
            AND half_hour_started_at <= subtractSeconds({to:DateTime64(9, 'UTC')}, 1800)
            AND ({service_instance_id:String} = '' OR service_instance_id = {service_instance_id:String})
        GROUP BY service_instance_id, half_hour_started_at
        UNION ALL
        SELECT 'dropped_windows', service_instance_id, toStartOfInterval(dropped_window, INTERVAL 30 MINUTE) AS half_hour, toDateTime64(0, 3, 'UTC'), [sum(dropped)]
        FROM dropped_windows
        WHERE dropped_window >= {from:DateTime64(9, 'UTC')}
            AND dropped_window < {to:DateTime64(9, 'UTC')}
        GROUP BY service_instance_id, half_hour
    )
    GROUP BY service_instance_id, half_hour
    HAVING countIf(source != 'dropped_windows') = 2
        AND minIf(last_received_at, source != 'dropped_windows') = maxIf(last_received_at, source != 'dropped_windows')
        AND notEmpty(differing)
)
ORDER BY window_started_at, service_instance_id, rollup
LIMIT {limit:UInt64}
