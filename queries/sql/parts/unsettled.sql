-- row: The half hours that are to be read window by window: those that the time asked for begins or ends in, those that were not settled, or to which executions came since, and their neighbours, because a cell may reach there; all, where one cell or arm is asked for.
-- uses: since
-- parameter to: DateTime64(9, 'UTC') = 2200-01-01 00:00:00 | Executions submitted before this instant.
-- parameter history_s: UInt32 = 600 | How long before the time asked for to look for what an engine can execute, what a graph costs and since when it decodes plainly, in s. A cell that began before the time asked for counts from its start, at most from there.
-- parameter arm: String = '' | cell_arm; '' is any.
-- parameter cell: String = '' | One cell: the benchmark's cell_id, or the start of a 30 s window in Unix seconds; '' is any.
SELECT groupUniqArrayArray([half_hour - 1800, half_hour, half_hour + 1800])
FROM
(
    SELECT half_hour
    FROM
    (
        SELECT toStartOfInterval(window_started_at, INTERVAL 30 MINUTE) AS half_hour, toInt64(executions) AS n
        FROM cell_windows
        WHERE window_started_at > subtractSeconds(since, {history_s:UInt32} + 30)
            AND window_started_at < {to:DateTime64(9, 'UTC')}
        UNION ALL
        SELECT half_hour_started_at, -toInt64(h.executions)
        FROM engine_half_hours AS h FINAL
        WHERE half_hour_started_at >= since
            AND half_hour_started_at <= subtractSeconds({to:DateTime64(9, 'UTC')}, 1800)
            AND {arm:String} = '' AND {cell:String} = ''
    )
    GROUP BY half_hour
    HAVING sum(n) != 0
)
