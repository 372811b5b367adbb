-- question: Which hosts' clocks are steadily off against the collector's?
-- parameter at: DateTime64(9, 'UTC') = now | The instant to judge by, on the collector's clock: what arrived later is not known yet.
-- parameter lookback_s: UInt32 = 3600 | How long before `at` to look, in s.
-- parameter service_instance_id: String = '' | One engine instance; '' is any.
-- parameter latest_cells: UInt8 = 4 | So many of the latest cells are looked at.
-- parameter recent_s: UInt32 = 180 | Without a complete cell that arrived within this, nothing is known of an engine, in s.
-- parameter limit: UInt64 = 10000 | At most so many hosts, the clock furthest off first.
-- column host_name [] | Host.
-- column clock_off_s [s] | How far the clock is off by every one of its latest cells, at least: completions observed after they arrived (ahead), or arrivals long after completions (behind, or exported so seldom).
-- column clock [] | `ahead`, or `behind or late`.
-- column arrival_delay_min_s [s] | The least arrival delay of those cells.
-- column arrival_delay_max_s [s] | The most.
-- table: host_name, clock, clock_off_s, arrival_delay_min_s, arrival_delay_max_s
-- example: tachograph query skewed_clocks
SELECT
    host_name,
    greatest(-arrival_delay_max_s, arrival_delay_min_s) AS clock_off_s,
    if(arrival_delay_max_s < 0, 'ahead', 'behind or late') AS clock,
    min(delay_s) AS arrival_delay_min_s,
    max(delay_s) AS arrival_delay_max_s
FROM
(
    SELECT
        *,
        max(cell_received_at) OVER (PARTITION BY host_name) > subtractSeconds({at:DateTime64(9, 'UTC')}, {recent_s:UInt32}) AS is_recent,
        row_number() OVER (PARTITION BY host_name ORDER BY cell_received_at DESC, cell) AS place
    FROM
    (
        SELECT
            service_instance_id,
            cell,
            any(a.host_name) AS host_name,
            max(a.last_received_at) AS cell_received_at,
            (toUnixTimestamp64Milli(cell_received_at) - toUnixTimestamp64Milli(max(last_ended_at))) / 1e3 AS delay_s
        -- What had arrived by then, as far back: by arrival, because clocks are what is judged.
        FROM cell_windows AS a
        WHERE received_on BETWEEN toDate(subtractSeconds({at:DateTime64(9, 'UTC')}, {lookback_s:UInt32})) AND toDate({at:DateTime64(9, 'UTC')})
            AND a.last_received_at > subtractSeconds({at:DateTime64(9, 'UTC')}, {lookback_s:UInt32})
            AND a.last_received_at <= {at:DateTime64(9, 'UTC')}
            AND ({service_instance_id:String} = '' OR service_instance_id = {service_instance_id:String})
        GROUP BY service_instance_id, cell
        -- Its last 30 s window has passed, by its engine's clock.
        HAVING addMilliseconds(toDateTime64(max(window_started_at), 3, 'UTC'), toInt64(30000 + 1000 * delay_s)) <= {at:DateTime64(9, 'UTC')}
    )
)
WHERE is_recent AND place <= {latest_cells:UInt8} AND host_name != ''
GROUP BY host_name
HAVING count() >= 2
ORDER BY clock_off_s DESC, host_name
LIMIT {limit:UInt64}
