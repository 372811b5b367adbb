-- Which healthy cells are to be dropped: examined, nothing against them, nor against any other cell of the same engine
-- within context_s before or after, and all of those examined? By what was examined within look_back_s; the oldest first.
-- A healthy cell that executions arrived for since is not examined: unexamined_cells.sql finds it again.
WITH examined AS (
    SELECT
        service_instance_id, cell,
        -- In whole seconds: a clock at the end of time must not stop anything.
        intDiv(toUnixTimestamp64Nano(min(day_first_started_at)), 1000000000) AS started,
        intDiv(toUnixTimestamp64Nano(max(day_last_started_at)), 1000000000) AS ended,
        sum(day_executions) AS counted,
        max(day_reason) AS why, max(day_dropped_at) AS dropped
    FROM
    (
        SELECT
            service_instance_id, cell, received_on,
            min(c.first_started_at) AS day_first_started_at, max(c.last_started_at) AS day_last_started_at,
            max(c.executions) AS day_executions, max(c.reason) AS day_reason, max(c.dropped_at) AS day_dropped_at
        FROM cell_samples AS c
        WHERE received_on >= toDate(subtractSeconds(now('UTC'), {look_back_s:UInt32}))
        GROUP BY service_instance_id, cell, received_on
    )
    GROUP BY service_instance_id, cell
),
-- Every cell there is, examined or not: what is not known speaks against its neighbours.
cells AS (
    SELECT
        service_instance_id, cell,
        -- In whole seconds: a clock at the end of time must not stop anything.
        intDiv(toUnixTimestamp64Nano(min(first_started_at)), 1000000000) AS started,
        intDiv(toUnixTimestamp64Nano(max(last_started_at)), 1000000000) AS ended,
        (service_instance_id, cell) IN (SELECT service_instance_id, cell FROM examined WHERE why != '' OR dropped != toDateTime64(0, 3, 'UTC'))
            OR (service_instance_id, cell, sum(executions)) IN (SELECT service_instance_id, cell, counted FROM examined) AS is_examined,
        (service_instance_id, cell) IN (SELECT service_instance_id, cell FROM examined WHERE why NOT IN ('', 'share', 'marked')) AS is_odd
    FROM cell_windows
    WHERE received_on >= toDate(subtractSeconds(now('UTC'), {look_back_s:UInt32}))
    GROUP BY service_instance_id, cell
    HAVING sum(executions) > 0
)
SELECT e.service_instance_id AS service_instance_id, e.cell AS cell
FROM examined AS e
INNER JOIN
(
    SELECT
        service_instance_id,
        -- Where no cell may be dropped, as stretches of time.
        groupArrayIf((started - {context_s:UInt32}, ended + {context_s:UInt32}), is_odd OR NOT is_examined) AS barred
    FROM cells
    GROUP BY service_instance_id
) AS b ON b.service_instance_id = e.service_instance_id
WHERE e.why = '' AND e.dropped = toDateTime64(0, 3, 'UTC')
    AND NOT arrayExists(one -> e.ended >= one.1 AND e.started <= one.2, b.barred)
ORDER BY e.started, service_instance_id, cell
LIMIT {cells_max:UInt32}
