-- Which hosts' clocks are off, by the ends of executions against their arrival here? A host that is ahead sends what
-- ends in the future. One that is behind cannot be told from one that sends late, save that its delay is steady: what
-- piled up during an outage, or is imported, arrives with delays that differ, or all at once.
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
        SELECT host, maxIf(arrived_at, abs(delay_s) < {threshold_s:Float64}) AS arrived_last
        FROM windows
        GROUP BY host
    )
SELECT
    host,
    -round(median(delay_s), 1) AS offset_s,
    min(arrived_at) AS since
FROM windows
INNER JOIN in_order USING (host)
WHERE arrived_at > arrived_last AND delay_s < 86400
GROUP BY host, instance
HAVING max(arrived_at) > now64(3, 'UTC') - INTERVAL 15 MINUTE
   AND (max(delay_s) < 0
        OR (dateDiff('second', since, max(arrived_at)) >= 60 AND quantile(0.9)(delay_s) - quantile(0.1)(delay_s) < 30))
ORDER BY abs(offset_s) DESC, host, since
LIMIT 1 BY host
LIMIT 100
