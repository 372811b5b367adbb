-- question: Whose clock is off against the collector's, by how much and since when?
-- uses: windows_nearby
-- parameter arm: String = '' | cell_arm; '' is any.
-- parameter cell: String = '' | One cell: the benchmark's cell_id, or the start of a 30 s window in Unix seconds; '' is any.
-- parameter to: DateTime64(9, 'UTC') = 2200-01-01 00:00:00 | Executions submitted before this instant.
-- parameter off_above_s: Float64 = 5 | A clock counts as off when arrival differs from completion by more than this, in s. An engine that exports seldom, or whose records waited out an outage, or that was imported later, looks like a clock that is behind.
-- parameter limit: UInt64 = 10000 | At most so many hosts, the clock furthest off first.
-- column host_name [] | Host.
-- column instances [instances] | Engine instances there.
-- column arrival_delay_median_s [s] | Median over their 30 s windows of the last arrival - the last observed completion. Negative: the host's clock is ahead, by at least so much.
-- column arrival_delay_min_s [s] | The least.
-- column arrival_delay_max_s [s] | The most.
-- column clock [] | `ahead`, `behind or late`, or `in step`, by the latest window.
-- column off_s [s] | Arrival delay of the latest window where it is beyond off_above_s, else 0.
-- column off_since [time] | Start, by the host's clock, of the first of the windows that have been beyond it ever since; empty where the clock is in step.
-- table: host_name, clock, off_s, off_since, arrival_delay_median_s, arrival_delay_min_s, arrival_delay_max_s, instances
-- example: tachograph query clock_skew --param last_s=86400
SELECT
    host_name,
    uniqExact(service_instance_id) AS instances,
    quantileExact(0.5)(delay_s) AS arrival_delay_median_s,
    min(delay_s) AS arrival_delay_min_s,
    max(delay_s) AS arrival_delay_max_s,
    anyIf(state, is_since) AS clock,
    if(clock = 'in step', 0, argMax(delay_s, window_started_at)) AS off_s,
    if(clock = 'in step', NULL, minIf(window_started_at, is_since)) AS off_since
FROM
(
    SELECT
        *,
        -- Reading back from the latest window: as long as nothing else was seen.
        uniqExact(state) OVER latest_first = 1 AS is_since
    FROM
    (
        SELECT
            host_name,
            service_instance_id,
            window_started_at,
            (toUnixTimestamp64Milli(max(last_received_at)) - toUnixTimestamp64Milli(max(last_ended_at))) / 1e3 AS delay_s,
            multiIf(delay_s < -{off_above_s:Float64}, 'ahead', delay_s > {off_above_s:Float64}, 'behind or late', 'in step') AS state
        FROM windows_nearby
        WHERE window_started_at > subtractSeconds(since, 30)
            AND window_started_at < {to:DateTime64(9, 'UTC')}
            AND ({arm:String} = '' OR cell_arm = {arm:String})
            AND ({cell:String} = '' OR cell = {cell:String})
        GROUP BY host_name, service_instance_id, window_started_at
    )
    WINDOW latest_first AS (PARTITION BY host_name ORDER BY window_started_at DESC, service_instance_id ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
)
GROUP BY host_name
ORDER BY abs(off_s) DESC, host_name
LIMIT {limit:UInt64}
