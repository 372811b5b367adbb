-- question: Whose clock is off against the collector's, by how much and since when?
-- uses: since, unsettled
-- parameter arm: String = '' | cell_arm; '' is any.
-- parameter cell: String = '' | One cell: the benchmark's cell_id, or the start of a 30 s window in Unix seconds; '' is any.
-- parameter to: DateTime64(9, 'UTC') = 2200-01-01 00:00:00 | Executions submitted before this instant.
-- parameter service_instance_id: String = '' | One engine instance; '' is any.
-- parameter host: String = '' | host_name; '' is any.
-- parameter package: String = '' | engine_package; '' is any.
-- parameter recipe: String = '' | engine_recipe; '' is any.
-- parameter off_above_s: Float64 = 5 | A clock counts as off when arrival differs from completion by more than this, in s. An engine that exports seldom, or whose records waited out an outage, or that was imported later, looks like a clock that is behind.
-- parameter limit: UInt64 = 10000 | At most so many hosts, the clock furthest off first.
-- column host_name [] | Host.
-- column instances [instances] | Engine instances there.
-- column arrival_delay_median_s [s] | Median over their 30 s windows of the last arrival - the last observed completion. Negative: the host's clock is ahead, by at least so much.
-- column arrival_delay_min_s [s] | The least.
-- column arrival_delay_max_s [s] | The most.
-- column clock [] | `ahead`, `behind or late`, or `in step`, by the latest window.
-- column off_s [s] | Arrival delay of the latest window where it is beyond off_above_s, else 0. Negative: the host's clock is ahead; positive: behind, or late. The collector's tachograph_host_clock_offset_seconds has the opposite sign.
-- column off_since [time] | Start, by the host's clock, of the first of the windows that have been beyond it ever since; empty where the clock is in step.
-- table: host_name, clock, off_s, off_since, arrival_delay_median_s, arrival_delay_min_s, arrival_delay_max_s, instances
-- example: tachograph query clock_skew --param last_s=86400
SELECT
    host_name,
    uniqExact(engine) AS instances,
    quantileExactArray(0.5)(delays_ms) / 1e3 AS arrival_delay_median_s,
    min(arrayMin(delays_ms)) / 1e3 AS arrival_delay_min_s,
    max(arrayMax(delays_ms)) / 1e3 AS arrival_delay_max_s,
    -- By the latest window of each state: the first of them says the state now, the second where another one ends it. Of
    -- windows that begin together, the one of the first instance counts as the latest.
    (arraySort([(min((-in_step_at, engine)), 'in step'), (min((-ahead_at, engine)), 'ahead'), (min((-behind_at, engine)), 'behind or late')]) AS latest)[1].2 AS clock,
    if(clock = 'in step', 0, argMin(delay_ms, (-latest_at, engine)) / 1e3) AS off_s,
    if(clock = 'in step', NULL, toDateTime(-arrayMax(arrayFilter(one -> one < latest[2].1, groupArrayArray(off)).1), 'UTC')) AS off_since
FROM
(
    SELECT
        host_name,
        toString(service_instance_id) AS engine,
        groupArrayArray(windows) AS windows_at,
        groupArrayArray(delays) AS delays_ms,
        arrayMax(windows_at) AS latest_at,
        delays_ms[indexOf(windows_at, latest_at)] AS delay_ms,
        arrayMax(arrayMap((at, ms) -> if(abs(ms) <= 1e3 * {off_above_s:Float64}, at, 0), windows_at, delays_ms)) AS in_step_at,
        arrayMax(arrayMap((at, ms) -> if(ms < -1e3 * {off_above_s:Float64}, at, 0), windows_at, delays_ms)) AS ahead_at,
        arrayMax(arrayMap((at, ms) -> if(ms > 1e3 * {off_above_s:Float64}, at, 0), windows_at, delays_ms)) AS behind_at,
        arrayMap(at -> (-at, engine), arrayFilter((at, ms) -> abs(ms) > 1e3 * {off_above_s:Float64}, windows_at, delays_ms)) AS off
    FROM
    (
        SELECT
            host_name, service_instance_id, engine_package, engine_recipe,
            [toInt64(toUnixTimestamp(window_started_at))] AS windows,
            [toUnixTimestamp64Milli(max(w.last_received_at)) - toUnixTimestamp64Milli(max(w.last_ended_at))] AS delays
        FROM cell_windows AS w
        WHERE window_started_at > subtractSeconds(since, 30)
            AND window_started_at < {to:DateTime64(9, 'UTC')}
            AND toStartOfInterval(window_started_at, INTERVAL 30 MINUTE) IN (SELECT arrayJoin(unsettled))
            AND ({arm:String} = '' OR w.cell_arm = {arm:String})
            AND ({cell:String} = '' OR cell = {cell:String})
        GROUP BY host_name, service_instance_id, engine_package, engine_recipe, window_started_at
        UNION ALL
        SELECT host_name, service_instance_id, engine_package, engine_recipe, CAST(windows_started_at, 'Array(Int64)'), arrival_delays_ms
        FROM engine_half_hours FINAL
        WHERE half_hour_started_at >= since
            AND half_hour_started_at < {to:DateTime64(9, 'UTC')}
            AND half_hour_started_at NOT IN (SELECT arrayJoin(unsettled))
            AND reaching_cell = ''
    )
    WHERE ({service_instance_id:String} = '' OR service_instance_id = {service_instance_id:String})
        AND ({host:String} = '' OR host_name = {host:String})
        AND ({package:String} = '' OR engine_package = {package:String})
        AND ({recipe:String} = '' OR engine_recipe = {recipe:String})
    GROUP BY host_name, service_instance_id
)
GROUP BY host_name
ORDER BY abs(off_s) DESC, host_name
LIMIT {limit:UInt64}
