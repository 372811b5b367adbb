-- part: Each cell asked for: where each of its candidates' costs is measured (in the cell itself, else in the nearest earlier cell of the same instance, else in the nearest later one), which 30 s windows have to be read to judge it, and by the rollup's sketches how far each candidate may have been charged beyond its cost: never less than it was.
-- uses: cells_nearby
-- parameter arm: String = '' | cell_arm; '' is any.
-- parameter cell: String = '' | One cell: the benchmark's cell_id, or the start of a 30 s window in Unix seconds; '' is any.
SELECT
    service_instance_id,
    cell,
    any(cell_windows) AS own_windows,
    groupArray((graph, measured_in, arrayMap(window -> (window, measured_in), measured_windows))) AS places,
    groupArray(charged_ns / p90_at_least_ns) AS charged_ratios,
    groupArray(level_ns / median_at_least_ns) AS level_ratios
FROM
(
    SELECT
        *,
        argMaxIf((cell, windows, quantiles), cell_started_at, is_executed) OVER (PARTITION BY service_instance_id, graph ORDER BY cell_started_at) AS earlier,
        argMinIf((cell, windows, quantiles), cell_started_at, is_executed) OVER (PARTITION BY service_instance_id, graph ORDER BY cell_started_at DESC) AS later,
        if(earlier.1 != '', earlier, later) AS measured,
        measured.1 AS measured_in,
        measured.2 AS measured_windows,
        -- The sketch is within 1 %.
        measured.3[1] / 1.01 AS median_at_least_ns,
        measured.3[2] / 1.01 AS p90_at_least_ns
    FROM
    (
        SELECT
            service_instance_id,
            cell,
            graph,
            min(min(first_started_at)) OVER (PARTITION BY service_instance_id, cell) AS cell_started_at,
            max(max(last_started_at)) OVER (PARTITION BY service_instance_id, cell) AS cell_last_started_at,
            groupUniqArrayArray(groupUniqArray(window_started_at)) OVER (PARTITION BY service_instance_id, cell) AS cell_windows,
            max(({arm:String} = '' OR cell_arm = {arm:String}) AND ({cell:String} = '' OR cell = {cell:String}) ) AS is_wanted,
            groupUniqArray(window_started_at) AS windows,
            max(charged) > 0 AS is_candidate,
            countIf(graph = graph_name) > 0 AS is_executed,
            quantilesDDMergeIf(0.01, 0.5, 0.9)(gpu_time_sketch, charged < 0) AS quantiles,
            max(charged) AS charged_ns,
            max(level) AS level_ns
        FROM cells_nearby
        ARRAY JOIN
            arrayConcat([toString(graph_name)], charged_max_ns.1) AS graph,
            arrayConcat([toInt64(-1)], charged_max_ns.2) AS charged,
            arrayConcat([-1.], level_max_ns.2) AS level
        GROUP BY service_instance_id, cell, graph
    )
)
WHERE is_wanted AND is_candidate AND cell_last_started_at >= asked.since AND cell_started_at < asked.until AND measured_in != ''
GROUP BY service_instance_id, cell
