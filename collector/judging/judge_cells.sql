-- Judges the cells between `from` and `to` that have executions which their latest judgement does not count.
-- Written by `python -m queries.judging` from the query `judgements`: change that, not this.
-- Parameters: from, to.
INSERT INTO cell_windows (received_on, window_started_at, service_instance_id, cell, host_name, engine_package, engine_recipe, cell_arm, first_started_at, last_received_at, sequence_first, judgement)
WITH (
SELECT multiIf(
    {from:DateTime64(9, 'UTC')} > toDateTime64(0, 9, 'UTC'), {from:DateTime64(9, 'UTC')},
    1800 = 0 OR '' != '' OR '' != '', min(first_started_at),
    subtractSeconds(max(least(newest_at, {to:DateTime64(9, 'UTC')})), 1800)
)
FROM cell_windows
-- With `from`, nothing is read.
WHERE {from:DateTime64(9, 'UTC')} <= toDateTime64(0, 9, 'UTC')
    AND ('' = '' OR service_instance_id = '')
    AND ('' = '' OR host_name = '')
    AND ('' = '' OR engine_package = '')
    AND ('' = '' OR engine_recipe = '')
    AND ('' = '' OR cell_arm = '')
    AND ('' = '' OR cell = '')
    AND first_started_at < {to:DateTime64(9, 'UTC')}
) AS since,
cells_told AS (
SELECT
    *,
    (toUnixTimestamp64Nano(cell_ended_at) - toUnixTimestamp64Nano(cell_started_at)) / 1e9 AS elapsed_s,
    plain_ns / nullIf(plain_ns + speculative_ns, 0) AS plain_fraction,
    can_speculate AND plain_ns > 0.3 * (plain_ns + speculative_ns)
        AND plain_ns + speculative_ns >= 1e9 * 3.0 AS is_stuck,
    -- Only then is what was not found not there. What a graph costs may be measured after the cell: it is looked for once more then.
    judged_executions = cell_executions
        AND (has_later OR cell_received_at < subtractSeconds(now64(3, 'UTC'), 30))
        AND (NOT is_stuck OR judged_speculative_tokens_per_s > 0
            OR judged_at >= addSeconds(cell_received_at, 600)) AS is_whole
FROM
(
    SELECT
        *,
        -- Plain decode promises one token a lane. A graph that promises more, and was never executed, can only be speculative.
        max(is_speculative) OVER engine
            OR notEmpty(arrayExcept(groupUniqArrayArray(promising) OVER engine, groupUniqArrayArray(executed) OVER engine)) AS can_speculate,
        max(cell_started_at) OVER engine > cell_last_started_at AS has_later
    FROM
    (
        SELECT
            service_instance_id,
            cell,
            any(w.host_name) AS host_name,
            max(service_name) AS service_name,
            max(engine_name) AS engine_name,
            max(engine_version) AS engine_version,
            any(w.engine_package) AS engine_package,
            any(w.engine_recipe) AS engine_recipe,
            argMax(w.cost_model_latest.2, w.cost_model_latest.1) AS scheduler_cost_model,
            max(cell_id) AS cell_id,
            any(w.cell_arm) AS cell_arm,
            max(cell_position) AS cell_position,
            max(cell_concurrency) AS cell_concurrency,
            min(first_started_at) AS cell_started_at,
            max(last_started_at) AS cell_last_started_at,
            max(last_ended_at) AS cell_ended_at,
            max(w.last_received_at) AS cell_received_at,
            max(w.window_started_at) AS last_window_started_at,
            sum(executions) AS cell_executions,
            toUInt64(greatest(max(sequence_last) - min(sequence_first) + 1 - toInt64(sum(w.executions)), 0)) AS executions_lost,
            sum(plain_wall_time_ns) AS plain_ns,
            sum(speculative_wall_time_ns) AS speculative_ns,
            sum(plain_executions) AS plain_rounds,
            sum(speculative_executions) AS speculative_rounds,
            sum(tokens_emitted) AS tokens,
            sum(gpu_time_ns) AS gpu_ns,
            max(notEmpty(speculative_graphs)) AS is_speculative,
            -- Where a speculative graph was executed, nobody needs to ask what else there is.
            groupUniqArrayArrayIf(graphs, empty(w.speculative_graphs)) AS executed,
            groupUniqArrayArrayIf(promising_candidates, empty(w.speculative_graphs)) AS promising,
            -- Of the latest judgement. One by one, so that a question reads what it tells, and no more.
            max(w.judgement.judged_at) AS judged_at,
            argMax(w.judgement.executions, w.judgement.judged_at) AS judged_executions,
            argMax(w.judgement.turned_s, w.judgement.judged_at) AS judged_turned_s,
            argMax(w.judgement.decisions_turned, w.judgement.judged_at) AS judged_decisions_turned,
            argMax(w.judgement.plain_since, w.judgement.judged_at) AS judged_plain_since,
            argMax(w.judgement.plain_until, w.judgement.judged_at) AS judged_plain_until,
            argMax(w.judgement.plain_tokens_per_s, w.judgement.judged_at) AS judged_plain_tokens_per_s,
            argMax(w.judgement.speculative_tokens_per_s, w.judgement.judged_at) AS judged_speculative_tokens_per_s,
            argMax(w.judgement.best_speculative_graph, w.judgement.judged_at) AS judged_best_speculative_graph,
            argMax(w.judgement.inflation, w.judgement.judged_at) AS judged_inflation
        FROM cell_windows AS w
        WHERE window_started_at > subtractSeconds(since, 600 + 30)
            AND window_started_at < {to:DateTime64(9, 'UTC')}
            AND ('' = '' OR service_instance_id = '')
            AND ('' = '' OR w.host_name = '')
            AND ('' = '' OR w.engine_package = '')
            AND ('' = '' OR w.engine_recipe = '')
        GROUP BY service_instance_id, cell
    )
    WINDOW engine AS (PARTITION BY service_instance_id)
)
WHERE ('' = '' OR cell_arm = '')
    AND ('' = '' OR cell = '')
    AND cell_last_started_at >= since
    AND cell_started_at < {to:DateTime64(9, 'UTC')}
),
(
SELECT groupArray((toString(service_instance_id), cell))
FROM cells_told
WHERE judged_executions != cell_executions
    OR (judged_at < addSeconds(cell_received_at, 600) AND addSeconds(cell_received_at, 600) < now64(3, 'UTC'))
) AS unjudged_cells,
(
SELECT CAST((
    multiIf(
        {from:DateTime64(9, 'UTC')} > toDateTime64(0, 9, 'UTC'), {from:DateTime64(9, 'UTC')},
        1800 = 0 OR '' != '' OR '' != '', min(first_started_at),
        subtractSeconds(max(least(newest_at, {to:DateTime64(9, 'UTC')})), 1800)
    ),
    least({to:DateTime64(9, 'UTC')}, addNanoseconds(max(last_started_at), 1)),
    groupUniqArrayIf(toString(service_instance_id), '' != '' OR '' != '' OR '' != ''
        OR '' != '' OR '' != '')
), 'Tuple(since DateTime64(9, \'UTC\'), until DateTime64(9, \'UTC\'), engines Array(String))')
FROM cell_windows
WHERE ('' = '' OR service_instance_id = '')
    AND ('' = '' OR host_name = '')
    AND ('' = '' OR engine_package = '')
    AND ('' = '' OR engine_recipe = '')
    AND ('' = '' OR cell_arm = '')
    AND ('' = '' OR cell = '')
    AND first_started_at < {to:DateTime64(9, 'UTC')}
    AND window_started_at > subtractSeconds({from:DateTime64(9, 'UTC')}, 30)
) AS asked,
cells_nearby AS (
SELECT *
FROM cell_graphs
WHERE window_started_at > subtractSeconds(asked.since, 600 + 30)
    AND window_started_at < {to:DateTime64(9, 'UTC')}
    AND ('' = '' OR service_instance_id = '')
    AND ('' = '' OR host_name = '')
    AND ('' = '' OR engine_package = '')
    AND ('' = '' OR engine_recipe = '')
),
judged_by_rollup AS (
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
            max(('' = '' OR cell_arm = '') AND ('' = '' OR cell = '') ) AS is_wanted,
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
),
(
SELECT groupArray((toString(service_instance_id), cell))
FROM cells_told
WHERE is_stuck
) AS stuck_cells,
(
SELECT CAST((
    groupUniqArrayArray(arrayMap(one -> (toString(service_instance_id), one.1, one.2),
        arrayConcat(arrayMap(window -> (window, cell), own_windows), arrayFlatten(places.3)))),
    groupArrayArray(arrayMap(place -> (toString(service_instance_id), cell, place.1, place.2), places))
), 'Tuple(windows Array(Tuple(String, DateTime(\'UTC\'), String)), places Array(Tuple(String, String, String, String)))')
FROM judged_by_rollup
WHERE (service_instance_id, cell) IN (SELECT arrayJoin(unjudged_cells))
    AND ((service_instance_id, cell) IN (SELECT arrayJoin(stuck_cells))
        OR arrayMax(charged_ratios) > 1 + 0.1
        OR arrayExists((charged, level) -> charged > 1 + 0.05 AND level > 1 + 0.01, charged_ratios, level_ratios))
) AS plan,
executions_to_read AS (
SELECT
    *, cell, duration_ns, graph_gpu_time_ns, graph_wall_time_ns, graph_gpu_start_offset_ns, batch_tokens_accepted,
    scheduler_estimate_ns, scheduler_estimate_gpu_ns, scheduler_expected_tokens,
    -- Batches within a tenth of each other, mostly.
    toUInt8(round(8 * log2(1 + greatest(ifNull(batch_lanes, 0), 0)))) AS like_lanes
FROM graph_executions
WHERE (service_instance_id, toStartOfInterval(started_at, INTERVAL 30 SECOND), cell) IN (SELECT arrayJoin(plan.windows))
    AND ('' = '' OR service_instance_id = '')
    AND ('' = '' OR host_name = '')
    AND ('' = '' OR engine_package = '')
    AND ('' = '' OR engine_recipe = '')
),
measured_in_cell AS (
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
),
measured_costs AS (
SELECT
    p.1 AS service_instance_id,
    p.2 AS cell,
    p.3 AS graph,
    p.4 AS measured_in,
    cost_ns,
    cost_p90_ns,
    gpu_time_median_ns,
    costs_by_lanes,
    costs_p90_by_lanes,
    max(batch_ratio) OVER (PARTITION BY p.1) NOT BETWEEN 1 AND 1.025 AS batches_matter
FROM (SELECT arrayJoin(plan.places) AS p) AS places
INNER JOIN measured_in_cell AS m ON m.service_instance_id = places.p.1 AND m.cell = places.p.4 AND m.graph_name = places.p.3
WHERE cost_ns > 0
),
decisions AS (
SELECT
    d.service_instance_id AS service_instance_id,
    d.cell AS cell,
    started_at,
    graph_sequence,
    graph_name,
    graph_kind,
    graph_wall_time_ns,
    scheduler_candidate_graphs AS graphs,
    scheduler_candidate_estimates_ns AS estimates_ns,
    scheduler_candidate_expected_tokens AS tokens,
    -- A graph that was never executed with like batches has no cost here where they matter.
    arrayMap(graph -> multiIf(NOT has(m.graphs, graph), NULL, NOT m.batches_matter, m.costs_ns[indexOf(m.graphs, graph)],
        nullIf(m.costs_by_lanes[indexOf(m.graphs, graph)][like_lanes], 0)), graphs) AS costs_ns,
    arrayMap(graph -> multiIf(NOT has(m.graphs, graph), NULL, NOT m.batches_matter, m.costs_p90_ns[indexOf(m.graphs, graph)],
        nullIf(m.costs_p90_by_lanes[indexOf(m.graphs, graph)][like_lanes], 0)), graphs) AS costs_p90_ns,
    arrayMap((estimate, cost) -> ifNull(estimate > cost * (1 + 0.1), false), estimates_ns, costs_p90_ns) AS overcharged,
    arrayMap((expected, estimate, cost) -> expected / if(ifNull(estimate > cost, false), assumeNotNull(cost), estimate), tokens, estimates_ns, costs_ns) AS rates,
    indexOf(graphs, graph_name) AS chosen,
    indexOf(rates, arrayMax(rates)) AS best,
    rates[best] > rates[chosen] * (1 + 0.01)
        AND ifNull(estimates_ns[best] > costs_p90_ns[best] * (1 + 0.05), false) AS turned
FROM executions_to_read AS d
INNER JOIN
(
    SELECT service_instance_id, cell, groupArray(graph) AS graphs, groupArray(cost_ns) AS costs_ns, groupArray(cost_p90_ns) AS costs_p90_ns,
        groupArray(costs_by_lanes) AS costs_by_lanes, groupArray(costs_p90_by_lanes) AS costs_p90_by_lanes, any(batches_matter) AS batches_matter
    FROM measured_costs
    GROUP BY service_instance_id, cell
) AS m ON m.service_instance_id = d.service_instance_id AND m.cell = d.cell
WHERE ('' = '' OR cell_arm = '')
    AND graph_purpose = 'ordinary'
    AND graph_kind IN ('plain_decode', 'speculative')
    AND has(scheduler_candidate_graphs, graph_name)
    AND length(scheduler_candidate_graphs) = length(scheduler_candidate_estimates_ns)
    AND length(scheduler_candidate_graphs) = length(scheduler_candidate_expected_tokens)
    AND arrayAll(estimate -> estimate > 0, scheduler_candidate_estimates_ns)
),
windows_nearby AS (
SELECT *
FROM cell_windows
WHERE window_started_at > subtractSeconds(since, 600 + 30)
    AND window_started_at < {to:DateTime64(9, 'UTC')}
    AND ('' = '' OR service_instance_id = '')
    AND ('' = '' OR host_name = '')
    AND ('' = '' OR engine_package = '')
    AND ('' = '' OR engine_recipe = '')
),
engine_graphs AS (
SELECT
    service_instance_id,
    groupUniqArrayArray(w.graphs) AS executed,
    groupUniqArrayArray(w.speculative_graphs) AS speculative_executed,
    -- Plain decode promises one token a lane. A graph that promises more, and was never executed, can only be speculative.
    arraySort(arrayConcat(speculative_executed, arrayExcept(groupUniqArrayArray(promising_candidates), executed))) AS speculative_graphs,
    notEmpty(speculative_graphs) AS has_speculative
FROM windows_nearby AS w
GROUP BY service_instance_id
),
plain_alternatives AS (
SELECT
    service_instance_id,
    cell,
    -- Both of the same decisions, for a larger batch emits more.
    if(countIf(is_plain AND best_rate > 0) > 0,
        sumIf(plain_rate * graph_wall_time_ns, is_plain AND best_rate > 0) / sumIf(graph_wall_time_ns, is_plain AND best_rate > 0),
        sumIf(plain_rate * graph_wall_time_ns, is_plain) / nullIf(sumIf(graph_wall_time_ns, is_plain), 0)) AS plain_tokens_per_s,
    sumIf(best_rate * graph_wall_time_ns, is_plain AND best_rate > 0)
        / nullIf(sumIf(graph_wall_time_ns, is_plain AND best_rate > 0), 0) AS speculative_tokens_per_s,
    anyHeavyIf(best_graph, is_plain AND best_rate > 0) AS best_speculative_graph,
    sumIf(graph_wall_time_ns, turned) / 1e9 AS turned_s,
    countIf(turned) AS decisions_turned
FROM
(
    SELECT
        d.service_instance_id AS service_instance_id,
        cell,
        graph_wall_time_ns,
        turned,
        graph_kind = 'plain_decode' AS is_plain,
        tokens[chosen] * 1e9 / ifNull(costs_ns[chosen], estimates_ns[chosen]) AS plain_rate,
        arrayMap(
            (graph, expected, cost) -> if(has(g.speculative_graphs, graph), ifNull(expected * 1e9 / cost, 0), 0),
            graphs, tokens, costs_ns
        ) AS speculative_rates,
        arrayMax(speculative_rates) AS best_rate,
        graphs[indexOf(speculative_rates, best_rate)] AS best_graph
    FROM decisions AS d
    INNER JOIN engine_graphs AS g ON g.service_instance_id = d.service_instance_id
)
GROUP BY service_instance_id, cell
),
(
SELECT groupUniqArray((toString(service_instance_id), window_started_at))
FROM
(
    SELECT
        *,
        groupUniqArrayIf(speculative_before, is_stuck) OVER (PARTITION BY service_instance_id) AS from_before,
        groupUniqArrayIf(speculative_until, is_stuck) OVER (PARTITION BY service_instance_id) AS from_until
    FROM
    (
        SELECT
            service_instance_id,
            window_started_at,
            max((service_instance_id, cell) IN (SELECT arrayJoin(stuck_cells))) AS is_stuck,
            sumIf(ordinary_executions, graph_kind = 'speculative') > 0 AS has_speculative_round,
            sum(has_speculative_round) OVER (PARTITION BY service_instance_id ORDER BY window_started_at) AS speculative_until,
            speculative_until - has_speculative_round AS speculative_before
        FROM cells_nearby
        GROUP BY service_instance_id, window_started_at
    )
)
WHERE is_stuck OR has(from_before, speculative_until) OR has(from_until, speculative_before)
) AS stretch_windows,
plain_stretches AS (
SELECT
    service_instance_id,
    stretch,
    min(started_at) AS plain_since,
    max(addNanoseconds(started_at, duration_ns)) AS plain_until,
    count() AS rounds
FROM
(
    SELECT
        service_instance_id,
        started_at,
        duration_ns,
        graph_kind,
        countIf(graph_kind = 'speculative') OVER (PARTITION BY service_instance_id ORDER BY started_at, graph_sequence) AS stretch
    FROM graph_executions
    WHERE (service_instance_id, toStartOfInterval(started_at, INTERVAL 30 SECOND)) IN (SELECT arrayJoin(stretch_windows))
        AND graph_purpose = 'ordinary' AND graph_kind IN ('plain_decode', 'speculative')
)
WHERE graph_kind = 'plain_decode'
GROUP BY service_instance_id, stretch
),
overcharged_graphs AS (
SELECT
    d.service_instance_id AS service_instance_id,
    d.cell AS cell,
    d.graph AS graph,
    cost_ns,
    gpu_time_median_ns,
    if(measured_in = cell, '', measured_in) AS measured_in,
    estimate_mean_ns,
    estimate_max_ns,
    decisions,
    decisions_overcharged,
    overcharge_mean_ns,
    since_overcharged,
    until_overcharged,
    decisions_turned,
    turned_s,
    tokens_lost
FROM
(
    SELECT
        service_instance_id,
        cell,
        graph,
        avg(estimate_ns) AS estimate_mean_ns,
        max(estimate_ns) AS estimate_max_ns,
        count() AS decisions,
        countIf(is_overcharged) AS decisions_overcharged,
        ifNotFinite(avgIf(estimate_ns, is_overcharged), 0) AS overcharge_mean_ns,
        minIf(started_at, is_overcharged) AS since_overcharged,
        maxIf(started_at, is_overcharged) AS until_overcharged,
        countIf(turned AND position = best) AS decisions_turned,
        sumIf(graph_wall_time_ns, turned AND position = best) / 1e9 AS turned_s,
        sumIf((rates[best] - rates[chosen]) * graph_wall_time_ns, turned AND position = best) AS tokens_lost
    FROM decisions
    ARRAY JOIN graphs AS graph, estimates_ns AS estimate_ns, overcharged AS is_overcharged, arrayEnumerate(graphs) AS position
    GROUP BY service_instance_id, cell, graph
    HAVING decisions_overcharged > 0 OR decisions_turned > 0
) AS d
INNER JOIN measured_costs AS m ON m.service_instance_id = d.service_instance_id AND m.cell = d.cell AND m.graph = d.graph
)
SELECT
    toDate(cell_received_at) AS received_on,
    last_window_started_at AS window_started_at,
    t.service_instance_id AS service_instance_id,
    t.cell AS cell,
    host_name, engine_package, engine_recipe, cell_arm,
    toDateTime64('2200-01-01', 9, 'UTC') AS first_started_at,
    cell_received_at AS last_received_at,
    9223372036854775807 AS sequence_first,
    CAST((
        now64(3, 'UTC'),
        cell_executions,
        ifNull(p.turned_s, 0),
        ifNull(p.decisions_turned, 0),
        s.plain_since,
        s.plain_until,
        ifNull(p.plain_tokens_per_s, 0),
        ifNull(p.speculative_tokens_per_s, 0),
        ifNull(p.best_speculative_graph, ''),
        o.inflation
    ), 'Tuple(judged_at DateTime64(3, \'UTC\'), executions UInt64, turned_s Float64, decisions_turned UInt64, plain_since DateTime64(9, \'UTC\'), plain_until DateTime64(9, \'UTC\'), plain_tokens_per_s Float64, speculative_tokens_per_s Float64, best_speculative_graph String, inflation Array(Tuple(graph String, measured_in String, cost_ns Int64, gpu_time_median_ns Int64, estimate_mean_ns Float64, estimate_max_ns Int64, decisions UInt64, decisions_overcharged UInt64, overcharge_mean_ns Float64, overcharged_since DateTime64(9, \'UTC\'), overcharged_until DateTime64(9, \'UTC\'), decisions_turned UInt64, turned_s Float64, tokens_lost Float64)))') AS judgement
FROM cells_told AS t
LEFT JOIN plain_alternatives AS p ON p.service_instance_id = t.service_instance_id AND p.cell = t.cell
LEFT JOIN
(
    SELECT f.service_instance_id AS service_instance_id, f.cell AS cell, a.plain_since AS plain_since, a.plain_until AS plain_until
    FROM cells_told AS f
    INNER JOIN plain_stretches AS a ON a.service_instance_id = f.service_instance_id
    WHERE f.is_stuck AND a.plain_since < f.cell_ended_at AND a.plain_until > f.cell_started_at
    ORDER BY service_instance_id, cell, least(a.plain_until, f.cell_ended_at) - greatest(a.plain_since, f.cell_started_at) DESC
    LIMIT 1 BY service_instance_id, cell
) AS s ON s.service_instance_id = t.service_instance_id AND s.cell = t.cell
LEFT JOIN
(
    SELECT
        service_instance_id,
        cell,
        groupArray((graph, measured_in, cost_ns, gpu_time_median_ns, estimate_mean_ns, estimate_max_ns, decisions, decisions_overcharged, overcharge_mean_ns,
            since_overcharged, until_overcharged, decisions_turned, turned_s, tokens_lost)) AS inflation
    FROM overcharged_graphs
    GROUP BY service_instance_id, cell
) AS o ON o.service_instance_id = t.service_instance_id AND o.cell = t.cell
WHERE (t.service_instance_id, t.cell) IN (SELECT arrayJoin(unjudged_cells))
