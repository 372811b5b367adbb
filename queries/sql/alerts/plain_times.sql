-- question: When did cells arrive that may be stuck in plain decode: where is it worth looking back?
-- parameter from: DateTime64(9, 'UTC') = 1970-01-01 00:00:00 | What arrived at or after this instant, on the collector's clock.
-- parameter to: DateTime64(9, 'UTC') = 2200-01-01 00:00:00 | What arrived before this instant.
-- parameter stuck_above: Float64 = 0.3 | A cell is stuck when its plain fraction is above this: then that of one of its 30 s windows is.
-- parameter after_s: UInt32 = 90 | For how long after its last arrival a cell counts, in s.
-- column since [time] | First arrival of such windows, within each five minutes.
-- column until [time] | Last arrival of their cells, and after_s.
-- table: since, until
-- example: tachograph query plain_times --param from=-7d
SELECT
    min(stuck_from) AS since,
    addSeconds(max(cell_received_at), {after_s:UInt32}) AS until
FROM
(
    SELECT
        minIf(received_at, is_stuck) AS stuck_from,
        max(received_at) AS cell_received_at
    FROM
    (
        SELECT
            service_instance_id,
            cell,
            max(w.last_received_at) AS received_at,
            sum(plain_wall_time_ns) > {stuck_above:Float64} * (sum(plain_wall_time_ns) + sum(speculative_wall_time_ns)) AS is_stuck
        FROM cell_windows AS w
        WHERE received_on BETWEEN toDate({from:DateTime64(9, 'UTC')}) AND toDate(least({to:DateTime64(9, 'UTC')}, toDateTime64('2149-01-01', 9, 'UTC')))
            AND w.last_received_at >= {from:DateTime64(9, 'UTC')}
            AND w.last_received_at < {to:DateTime64(9, 'UTC')}
        GROUP BY service_instance_id, cell, window_started_at
    )
    GROUP BY service_instance_id, cell
    HAVING max(is_stuck)
)
GROUP BY toStartOfInterval(stuck_from, toIntervalMinute(5))
ORDER BY since
