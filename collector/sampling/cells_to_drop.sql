-- Which healthy cells are to be dropped: examined, nothing against them, nor against any other cell of the same engine
-- within context_s before or after, and all of those examined? By what was examined within look_back_s; the oldest first.
-- Of every so many engines (parts) one (part), by a hash: memory goes with the cells that are looked at.
-- A healthy cell that executions arrived for since is not examined: unexamined_cells.sql finds it again.
-- Columns: started, the cell's first submission, in s by the engine's clock; its engine, and its name; received_ms, when the
-- last of what it is known by was received, in ms by the collector's clock: what was received later speaks for itself.
SELECT healthy.2 AS started, service_instance_id, healthy.1 AS cell, healthy.4 AS received_ms
FROM
(
    SELECT
        service_instance_id,
        -- Where no cell may be dropped, as stretches of time: what is not known speaks against its neighbours.
        groupArrayIf((started - {context_s:UInt32}, ended + {context_s:UInt32}), is_odd OR NOT is_examined) AS barred,
        groupArrayIf((cell, started, ended, last_received_ms), is_known AND why = '' AND NOT is_dropped) AS healthies
    FROM
    (
        -- Every cell there is, examined or not, in one pass: sets of them would take several times the memory.
        SELECT
            service_instance_id, cell,
            -- In whole seconds: a clock at the end of time must not stop anything.
            intDiv(toUnixTimestamp64Nano(min(first_at)), 1000000000) AS started,
            intDiv(toUnixTimestamp64Nano(max(last_at)), 1000000000) AS ended,
            toUnixTimestamp64Milli(max(day_received_at)) AS last_received_ms,
            sum(day_stored) AS stored,
            max(day_is_known) AS is_known, max(day_reason) AS why, max(day_dropped_at) != toDateTime64(0, 3, 'UTC') AS is_dropped,
            is_known AND (why != '' OR is_dropped OR stored = sum(day_counted)) AS is_examined,
            why NOT IN ('', 'share', 'marked') AS is_odd
        FROM
        (
            SELECT
                service_instance_id, cell, first_started_at AS first_at, last_started_at AS last_at, last_received_at AS day_received_at,
                executions AS day_stored, 0 AS day_counted, false AS day_is_known, '' AS day_reason, toDateTime64(0, 3, 'UTC') AS day_dropped_at
            FROM cell_windows
            WHERE received_on >= toDate(subtractSeconds(now('UTC'), {look_back_s:UInt32}))
                AND sipHash64(service_instance_id) % {parts:UInt32} = {part:UInt32}
            UNION ALL
            SELECT
                service_instance_id, cell, min(first_started_at), max(last_started_at), toDateTime64(0, 3, 'UTC'), 0,
                max(executions), true, max(reason), max(dropped_at)
            FROM cell_samples
            WHERE received_on >= toDate(subtractSeconds(now('UTC'), {look_back_s:UInt32}))
                AND sipHash64(service_instance_id) % {parts:UInt32} = {part:UInt32}
            GROUP BY service_instance_id, cell, received_on
        )
        GROUP BY service_instance_id, cell
        HAVING stored > 0
    )
    GROUP BY service_instance_id
)
ARRAY JOIN healthies AS healthy
WHERE NOT arrayExists(one -> healthy.3 >= one.1 AND healthy.2 <= one.2, barred)
ORDER BY started, service_instance_id, cell
LIMIT {cells_max:UInt32}
