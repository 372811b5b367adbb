-- part: What each graph cost in each cell that executed it, a speculative one with its drafts: draft executions belong to the decode round that follows them in the order of submission, if that is a speculative one, as `engine_hooks.contract.drafting` has it. A gap or handoff counts as the graph's only when at least 5 executions show it, so that one stumble never does.
-- uses: executions_to_read
SELECT
    service_instance_id,
    cell,
    graph_name,
    gpu_time_median_ns,
    batch_ratio,
    greatest(gap_median_ns + if(length(drafted) >= 5, arrayReduce('quantileExact(0.5)', drafted.3), 0),
        toInt64(round(feedback_share * handoff_median_ns)), 0) AS exposed_ns,
    -- Without drafts these arrays are empty, and their quantiles 0.
    exposed_ns + arrayReduce('quantileExact(0.5)', drafted.2) AS besides_ns,
    exposed_ns + arrayReduce('quantileExact(0.9)', drafted.2) AS besides_p90_ns,
    gpu_time_median_ns + besides_ns AS cost_ns,
    -- Where the GPU's own clock drifts within a cell, an estimate is right at its time though off the median.
    gpu_time_p90_ns + besides_p90_ns AS cost_p90_ns,
    mapApply((lanes, ns) -> (lanes, ns + besides_ns), medians_by_lanes) AS costs_by_lanes,
    mapApply((lanes, ns) -> (lanes, ns + besides_p90_ns), p90s_by_lanes) AS costs_p90_by_lanes
FROM
(
    SELECT
        *,
        -- Of each round of the graph what was added up since the round before.
        arrayFilter(one -> one.1 = 1, arrayZip(arrayFilter(mark -> mark > 0, events.2),
            arrayPopFront(arrayDifference(arrayPushFront(arrayFilter((sum, mark) -> mark > 0, arrayCumSum(events.3), events.2), 0))),
            arrayPopFront(arrayDifference(arrayPushFront(arrayFilter((sum, mark) -> mark > 0, arrayCumSum(events.4), events.2), 0))))) AS drafted
    FROM
    (
        SELECT
            *,
            -- In the order of submission: drafts, the rounds of this graph, and once more all rounds.
            if(empty(drafts), [], arraySort(arrayConcat(drafts, arrayMap(sequence -> (sequence, 1, 0, 0), own_rounds),
                arrayMap(sequence -> (sequence, 2, 0, 0), rounds)))) AS events
        FROM
        (
            SELECT
                service_instance_id,
                cell,
                graph_name,
                quantileExact(0.5)(graph_gpu_time_ns) AS gpu_time_median_ns,
                if(countIf(NOT graph_after_idle) >= 5,
                    quantileExactIf(0.5)(graph_wall_time_ns - graph_gpu_time_ns, NOT graph_after_idle), 0) AS gap_median_ns,
                if(countIf(graph_queue_depth = 0 AND NOT graph_after_idle) >= 5,
                    quantileExactIf(0.5)(graph_wall_time_ns - graph_gpu_time_ns, graph_queue_depth = 0 AND NOT graph_after_idle), 0) AS handoff_median_ns,
                ifNotFinite(countIf(graph_completion_feedback AND graph_purpose = 'ordinary') / countIf(graph_purpose = 'ordinary'), 0) AS feedback_share,
                quantileExact(0.9)(graph_gpu_time_ns) AS gpu_time_p90_ns,
                quantileExactMap(0.5)(map(like_lanes, graph_gpu_time_ns)) AS medians_by_lanes,
                quantileExactMap(0.9)(map(like_lanes, graph_gpu_time_ns)) AS p90s_by_lanes,
                sumMap(map(like_lanes, 1)) AS executions_by_lanes,
                mapValues(maxMap(mapFilter((lanes, ns) -> executions_by_lanes[lanes] >= 5, medians_by_lanes))
                    OVER (PARTITION BY service_instance_id, graph_name)) AS usual_by_lanes,
                -- The slowest batch over the fastest; 0 where the graph was executed with one only.
                if(length(usual_by_lanes) > 1, arrayMax(usual_by_lanes) / arrayMin(usual_by_lanes), 0) AS batch_ratio,
                groupArrayIf(graph_sequence, graph_kind = 'speculative') AS own_rounds,
                groupArrayArray(groupArrayIf(graph_sequence, graph_kind IN ('plain_decode', 'speculative'))) OVER of_cell AS rounds,
                groupArrayArray(groupArrayIf((graph_sequence, 0, graph_gpu_time_ns,
                    if(graph_after_idle, 0, graph_wall_time_ns - graph_gpu_time_ns)), graph_kind = 'draft')) OVER of_cell AS drafts
            FROM executions_to_read
            GROUP BY service_instance_id, cell, graph_name
            WINDOW of_cell AS (PARTITION BY service_instance_id, cell)
        )
    )
)
