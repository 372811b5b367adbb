-- question: Which hosts' clocks are steadily off against the collector's?
-- uses: complete_cells
-- parameter at: DateTime64(9, 'UTC') = now | The instant to judge by, on the collector's clock: what arrived later is not known yet.
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
    FROM complete_cells
)
WHERE is_recent AND place <= {latest_cells:UInt8} AND host_name != ''
GROUP BY host_name
HAVING count() >= 2
ORDER BY clock_off_s DESC, host_name
LIMIT {limit:UInt64}
