-- question: Which engine instances bear submission numbers more than once within 30 s: several runs or ranks under one service.instance.id, or executions stored twice?
-- uses: windows_asked, uneven_engines
-- parameter limit: UInt64 = 10000 | At most so many instances, the one with the most such executions first.
-- column service_instance_id [] | The engine instance.
-- column executions_again [executions] | Executions beyond the first of their number, within the same 30 s.
-- column executions [executions] | All executions of those 30 s.
-- column windows [] | Such windows of 30 s.
-- column repeated_since [time] | The first of them began then.
-- column repeated_until [time] | The last of them ended then.
-- table: service_instance_id, executions_again, executions, windows, repeated_since, repeated_until
-- example: tachograph query repeated_numbers --param last_s=86400
SELECT
    service_instance_id,
    sum(again) AS executions_again,
    sum(stored) AS executions,
    count() AS windows,
    min(window_started_at) AS repeated_since,
    addSeconds(toDateTime64(max(window_started_at), 0, 'UTC'), 30) AS repeated_until
FROM
(
    SELECT
        service_instance_id,
        window_started_at,
        sum(w.executions) AS stored,
        stored - groupBitmapMerge(sequences) AS again
    FROM windows_asked AS w
    WHERE service_instance_id IN (SELECT service_instance_id FROM uneven_engines)
    GROUP BY service_instance_id, window_started_at
)
WHERE again > 0
GROUP BY service_instance_id
ORDER BY executions_again DESC, service_instance_id
LIMIT {limit:UInt64}
