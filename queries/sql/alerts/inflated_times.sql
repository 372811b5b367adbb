-- question: When did cells run in which inflated estimates turned decisions, or which were not judged: where is it worth looking back?
-- parameter from: DateTime64(9, 'UTC') = 1970-01-01 00:00:00 | Cells with a 30 s window from this instant on.
-- parameter to: DateTime64(9, 'UTC') = 2200-01-01 00:00:00 | Executions submitted before this instant.
-- parameter after_s: UInt32 = 90 | For how long after its last completion a cell counts, in s.
-- column since [time] | First submission of such cells, of those that began within five minutes.
-- column until [time] | Their last observed completion, and after_s.
-- table: since, until
-- example: tachograph query inflated_times --param from=-7d
SELECT
    min(cell_started_at) AS since,
    -- No instant is told beyond April 2262.
    addSeconds(least(max(cell_ended_at), subtractSeconds(toDateTime64('2262-04-11 23:47:16', 9, 'UTC'), {after_s:UInt32})), {after_s:UInt32}) AS until
FROM
(
    SELECT
        min(w.first_started_at) AS cell_started_at,
        max(w.last_ended_at) AS cell_ended_at
    FROM cell_windows AS w
    WHERE window_started_at > subtractSeconds({from:DateTime64(9, 'UTC')}, 30)
        AND window_started_at < {to:DateTime64(9, 'UTC')}
    GROUP BY service_instance_id, cell
    HAVING argMax(w.judgement.executions, w.judgement.judged_at) != sum(w.executions)
        OR arrayExists(one -> one.turned_s > 0, argMax(w.judgement.inflation, w.judgement.judged_at))
)
GROUP BY intDiv(toUnixTimestamp64Nano(cell_started_at), 300000000000)
ORDER BY since
