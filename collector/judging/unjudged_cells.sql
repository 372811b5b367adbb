-- Which stretches of ten minutes, by the engines' clocks, have cells that judge_cells.sql has yet to judge, of those that
-- executions arrived for within recent_s? First those that arrived within 600 s of their end by the engine's clock, the latest
-- first: a clock that is ahead, or an import, holds up nothing that is live. Then the others, as long as they wait, so that none of
-- them holds up another for ever. What began after 2106 lies in no window, and is not judged.
-- Columns: first, the first submission of those cells; last, their last; cells, how many they are. As judge_cells.sql has it, a cell is judged again
-- when 600 s have passed, because what its graphs cost may be measured in executions after it.
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
    WHERE received_on >= toDate(subtractSeconds(now('UTC'), {recent_s:UInt32} + 86400))
        AND (service_instance_id, cell) IN
        (
            SELECT service_instance_id, cell FROM cell_windows
            WHERE received_on >= toDate(subtractSeconds(now('UTC'), {recent_s:UInt32}))
                AND last_received_at > subtractSeconds(now64(3, 'UTC'), {recent_s:UInt32})
        )
    GROUP BY service_instance_id, cell
    HAVING cell_last_started_at < toDateTime64('2106-02-07 06:28:00', 9, 'UTC')
        AND (stored != counted
            OR (judged_at < addSeconds(cell_received_at, 600) AND addSeconds(cell_received_at, 600) < now64(3, 'UTC')))
)
GROUP BY
    abs(dateDiff('second', cell_last_started_at, cell_received_at)) <= 600 AS is_live,
    toStartOfInterval(cell_started_at, INTERVAL 600 SECOND)
ORDER BY is_live DESC, if(is_live, NULL, toStartOfInterval(min(cell_received_at), INTERVAL 600 SECOND)), first DESC
LIMIT {stretches:UInt32}
