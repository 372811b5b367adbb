-- Which stretches of ten minutes, by the engines' clocks, have cells whose verdict is final and that sampling has yet to
-- examine? The oldest first. Of every so many engines (parts) one (part), by a hash: memory goes with the cells that are
-- looked at. A verdict is final when it counts every execution, was given 600 s after the last of them arrived, and was
-- settled_s ago.
-- Cells of clocks beyond reason, and those that span more than an hour, are never examined, and so kept.
-- Columns: stretch, its number since 1970; first, the first submission of those cells; last, their last.
SELECT toUInt32(intDiv(toUnixTimestamp64Nano(cell_started_at), 600000000000)) AS stretch, min(cell_started_at) AS first, max(cell_last_started_at) AS last
FROM
(
    SELECT
        min(first_started_at) AS cell_started_at,
        max(last_started_at) AS cell_last_started_at,
        max(w.last_received_at) AS cell_received_at,
        sum(executions) AS stored,
        max(w.judgement) AS latest
    FROM cell_windows AS w
    WHERE received_on >= toDate(subtractSeconds(now('UTC'), {look_back_s:UInt32}))
        AND sipHash64(service_instance_id) % {parts:UInt32} = {part:UInt32}
        AND (service_instance_id, cell) NOT IN (
            SELECT service_instance_id, cell FROM cell_samples
            WHERE received_on >= toDate(subtractSeconds(now('UTC'), {look_back_s:UInt32}))
                AND sipHash64(service_instance_id) % {parts:UInt32} = {part:UInt32}
            GROUP BY service_instance_id, cell
            HAVING max(reason) != '' OR max(dropped_at) != toDateTime64(0, 3, 'UTC')
        )
    GROUP BY service_instance_id, cell
    HAVING stored > 0 AND latest.executions = stored
        -- What is healthy and still there is examined again when more has arrived.
        AND (service_instance_id, cell, stored) NOT IN (
            SELECT service_instance_id, cell, sum(counted)
            FROM
            (
                SELECT service_instance_id, cell, max(s.executions) AS counted FROM cell_samples AS s
                WHERE received_on >= toDate(subtractSeconds(now('UTC'), {look_back_s:UInt32}))
                    AND sipHash64(service_instance_id) % {parts:UInt32} = {part:UInt32}
                GROUP BY service_instance_id, cell, received_on
            )
            GROUP BY service_instance_id, cell
        )
        AND latest.judged_at >= addSeconds(cell_received_at, 600)
        AND latest.judged_at < subtractSeconds(now64(3, 'UTC'), {settled_s:UInt32})
        AND cell_started_at >= toDateTime64('2000-01-01', 9, 'UTC') AND cell_last_started_at < toDateTime64('2100-01-01', 9, 'UTC')
        AND dateDiff('second', cell_started_at, cell_last_started_at) <= 3600
)
GROUP BY stretch
ORDER BY stretch
LIMIT {stretches:UInt32}
