-- part: Ordinary decoding decisions with everything they chose from, judged again with inflated estimates cut down to measured costs. A measured cost above the estimate changes nothing here: that is another fault.
-- uses: executions_to_read, measured_costs
-- parameter overcharge_above: Float64 = 0.1 | An estimate is inflated when it exceeds by more than this fraction what the graph cost at the 90th percentile of its GPU times.
-- parameter turned_above: Float64 = 0.01 | A decision counts as turned when measured costs make another graph better by more than this fraction and ...
-- parameter turned_overcharge_above: Float64 = 0.05 | ... and that graph was charged more than this fraction above that 90th percentile.
-- parameter arm: String = '' | cell_arm; '' is any.
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
    arrayMap((estimate, cost) -> ifNull(estimate > cost * (1 + {overcharge_above:Float64}), false), estimates_ns, costs_p90_ns) AS overcharged,
    arrayMap((expected, estimate, cost) -> expected / if(ifNull(estimate > cost, false), assumeNotNull(cost), estimate), tokens, estimates_ns, costs_ns) AS rates,
    indexOf(graphs, graph_name) AS chosen,
    indexOf(rates, arrayMax(rates)) AS best,
    rates[best] > rates[chosen] * (1 + {turned_above:Float64})
        AND ifNull(estimates_ns[best] > costs_p90_ns[best] * (1 + {turned_overcharge_above:Float64}), false) AS turned
FROM executions_to_read AS d
INNER JOIN
(
    SELECT service_instance_id, cell, groupArray(graph) AS graphs, groupArray(cost_ns) AS costs_ns, groupArray(cost_p90_ns) AS costs_p90_ns,
        groupArray(costs_by_lanes) AS costs_by_lanes, groupArray(costs_p90_by_lanes) AS costs_p90_by_lanes, any(batches_matter) AS batches_matter
    FROM measured_costs
    GROUP BY service_instance_id, cell
) AS m ON m.service_instance_id = d.service_instance_id AND m.cell = d.cell
WHERE ({arm:String} = '' OR cell_arm = {arm:String})
    AND graph_purpose = 'ordinary'
    AND graph_kind IN ('plain_decode', 'speculative')
    AND has(scheduler_candidate_graphs, graph_name)
    AND length(scheduler_candidate_graphs) = length(scheduler_candidate_estimates_ns)
    AND length(scheduler_candidate_graphs) = length(scheduler_candidate_expected_tokens)
    AND arrayAll(estimate -> estimate > 0, scheduler_candidate_estimates_ns)
