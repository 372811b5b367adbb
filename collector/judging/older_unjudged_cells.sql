-- Which stretches of ten minutes, by the engines' clocks, have cells that judge_cells.sql has yet to judge, of those that
-- executions arrived for on a day and that began before an instant? The latest first.
-- Columns and conditions: as unjudged_cells.sql has them, which asks the same of what arrived of late.
-- Parameters: day, UTC; before, by the engines' clocks; stretches.
SELECT min(cell_started_at) AS first, max(cell_last_started_at) AS last, count() AS cells
FROM
(
    SELECT
        min(first_started_at) AS cell_started_at,
        max(last_started_at) AS cell_last_started_at,
        max(w.last_received_at) AS cell_received_at,
        sum(executions) AS stored,
        argMax(judgement.executions, judgement.judged_at) AS counted,
        max(judgement.judged_at) AS judged_at
    FROM cell_windows AS w
    WHERE received_on BETWEEN {day:Date} - 1 AND {day:Date} + 1
        AND (service_instance_id, cell) IN (SELECT service_instance_id, cell FROM cell_windows WHERE received_on = {day:Date})
    GROUP BY service_instance_id, cell
    HAVING cell_started_at < {before:DateTime64(9, 'UTC')}
        AND (stored != counted
            OR (judged_at < addSeconds(cell_received_at, 600) AND addSeconds(cell_received_at, 600) < now64(3, 'UTC')))
)
GROUP BY toStartOfInterval(cell_started_at, INTERVAL 600 SECOND)
ORDER BY first DESC
LIMIT {stretches:UInt32}
