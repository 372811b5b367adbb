-- part: Every uninterrupted stretch of ordinary plain decode around the cells to be judged: refreshes, probes and prefills do not interrupt it, an ordinary speculative round does. It may begin before the cell.
-- uses: stretch_windows
SELECT
    service_instance_id,
    stretch,
    min(started_at) AS plain_since,
    max(addNanoseconds(started_at, duration_ns)) AS plain_until,
    count() AS rounds
FROM
(
    SELECT
        service_instance_id,
        started_at,
        duration_ns,
        graph_kind,
        countIf(graph_kind = 'speculative') OVER (PARTITION BY service_instance_id ORDER BY started_at, graph_sequence) AS stretch
    FROM graph_executions
    WHERE (service_instance_id, toStartOfInterval(started_at, INTERVAL 30 SECOND)) IN (SELECT arrayJoin(stretch_windows))
        AND graph_purpose = 'ordinary' AND graph_kind IN ('plain_decode', 'speculative')
)
WHERE graph_kind = 'plain_decode'
GROUP BY service_instance_id, stretch
