-- part: What each graph cost in each cell that executed it. A gap or handoff counts as the graph's only when at least 5 executions show it, so that one stumble never does.
-- uses: executions_to_read
SELECT
    service_instance_id,
    cell,
    graph_name,
    min(min(started_at)) OVER (PARTITION BY service_instance_id, cell) AS cell_started_at,
    quantileExact(0.5)(graph_gpu_time_ns) AS gpu_time_median_ns,
    if(countIf(NOT graph_after_idle) >= 5,
        quantileExactIf(0.5)(graph_wall_time_ns - graph_gpu_time_ns, NOT graph_after_idle), 0) AS gap_median_ns,
    if(countIf(graph_queue_depth = 0 AND NOT graph_after_idle) >= 5,
        quantileExactIf(0.5)(graph_wall_time_ns - graph_gpu_time_ns, graph_queue_depth = 0 AND NOT graph_after_idle), 0) AS handoff_median_ns,
    ifNotFinite(countIf(graph_completion_feedback AND graph_purpose = 'ordinary') / countIf(graph_purpose = 'ordinary'), 0) AS feedback_share,
    greatest(gap_median_ns, toInt64(round(feedback_share * handoff_median_ns)), 0) AS exposed_ns,
    gpu_time_median_ns + exposed_ns AS cost_ns,
    -- Where the GPU's own clock drifts within a cell, an estimate is right at its time though off the median.
    quantileExact(0.9)(graph_gpu_time_ns) + exposed_ns AS cost_p90_ns,
    quantileExactMap(0.5)(map(like_lanes, graph_gpu_time_ns)) AS medians_by_lanes,
    quantileExactMap(0.9)(map(like_lanes, graph_gpu_time_ns)) AS p90s_by_lanes,
    sumMap(map(like_lanes, 1)) AS executions_by_lanes,
    mapApply((lanes, ns) -> (lanes, ns + exposed_ns), medians_by_lanes) AS costs_by_lanes,
    mapApply((lanes, ns) -> (lanes, ns + exposed_ns), p90s_by_lanes) AS costs_p90_by_lanes,
    mapValues(maxMap(mapFilter((lanes, ns) -> executions_by_lanes[lanes] >= 5, medians_by_lanes))
        OVER (PARTITION BY service_instance_id, graph_name)) AS usual_by_lanes,
    -- The slowest batch over the fastest; 0 where the graph was executed with one only.
    if(length(usual_by_lanes) > 1, arrayMax(usual_by_lanes) / arrayMin(usual_by_lanes), 0) AS batch_ratio
FROM executions_to_read
GROUP BY service_instance_id, cell, graph_name
