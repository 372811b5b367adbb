-- Which hosts' clocks are off, by the ends of executions against their arrival here? A host that is ahead sends what
-- ends in the future. One that is behind cannot be told from one that sends late, save that its delay is steady: what
-- piled up during an outage, or is imported, arrives with delays that differ, or all at once. An instance that is in step
-- tells of its host's clock: against those that were last heard of before it was, as they ended before the clock was mended,
-- and against those that seem behind beside it, as they send late. No lateness makes a clock seem ahead.
-- Parameters: threshold_s, a delay beyond which a 30 s window counts as off.
-- Columns: host, an engine instance's where it has no name; offset_s, clock of the host - ours, the delay of sending
-- included where it is behind, of the instance that is furthest off where its instances disagree; since, arrival of that
-- one's first window in the row of those that are off.
WITH
    windows AS
    (
        SELECT
            if(host_name = '', service_instance_id, host_name) AS host,
            service_instance_id AS instance,
            window_started_at,
            max(last_received_at) AS arrived_at,
            dateDiff('millisecond', toDateTime64(max(last_ended_at), 3, 'UTC'), arrived_at) / 1e3 AS delay_s
        FROM cell_graphs
        WHERE received_on >= toDate(now('UTC') - INTERVAL 1 DAY)
        GROUP BY host, instance, window_started_at
    ),
    in_order AS
    (
        SELECT
            host,
            instance,
            in_step_last,
            max(in_step_since) OVER (PARTITION BY host) AS mended_at,
            max(in_step_last) OVER (PARTITION BY host) AS host_in_step_last
        FROM
        (
            SELECT
                host,
                instance,
                maxIf(arrived_at, is_in_step) AS in_step_last,
                -- When it came into step; here and above the beginning of time where it is not.
                arrayMin(arrayFilter(at -> at > maxIf(arrived_at, NOT is_in_step), groupArrayIf(arrived_at, is_in_step))) AS in_step_since
            FROM (SELECT *, abs(delay_s) < {threshold_s:Float64} AS is_in_step FROM windows)
            GROUP BY host, instance
        )
    )
SELECT
    host,
    -round(median(delay_s), 1) AS offset_s,
    min(arrived_at) AS since
FROM windows
INNER JOIN in_order USING (host, instance)
WHERE arrived_at > in_step_last AND delay_s < 86400
GROUP BY host, instance
HAVING max(arrived_at) > now64(3, 'UTC') - INTERVAL 15 MINUTE
   AND max(arrived_at) > any(mended_at)
   AND (max(delay_s) < 0
        OR (dateDiff('second', greatest(since, any(host_in_step_last)), max(arrived_at)) >= 60 AND quantile(0.9)(delay_s) - quantile(0.1)(delay_s) < 30))
ORDER BY abs(offset_s) DESC, host, since
LIMIT 1 BY host
LIMIT 100
