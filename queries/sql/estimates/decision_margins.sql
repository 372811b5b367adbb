-- question: By what margin did each graph win, and how many decisions were near-ties?
-- uses: selected
-- parameter near_tie_percent: Float64 = 1 | A decision is a near-tie when the chosen graph's expected tokens/s exceed the next best's by less than this, in %.
-- parameter limit: UInt64 = 10000 | At most so many rows, the most near-ties first.
-- column service_instance_id [] | The engine instance.
-- column host_name [] | Host of the engine.
-- column scheduler_cost_model [] | Cost model that made the estimates.
-- column graph_name [] | The graph chosen.
-- column next_best_graph [] | The best of the candidates that were not chosen.
-- column decisions [decisions] | Ordinary decoding decisions between the two.
-- column near_ties [decisions] | Those below near_tie_percent, either way.
-- column near_tie_fraction [fraction] | near_ties / decisions.
-- column against_estimates [decisions] | Decisions where the chosen graph was not the best by the scheduler's own figures.
-- column margin_median_percent [%] | Median of how much more tokens/s the chosen graph promised.
-- column margin_p10_percent [%] | 10th percentile.
-- column margin_p90_percent [%] | 90th percentile.
-- table: host_name, graph_name, next_best_graph, decisions, near_ties, near_tie_fraction, margin_median_percent, margin_p10_percent, against_estimates, scheduler_cost_model
-- example: tachograph query decision_margins --param cell=bench-r014
SELECT
    service_instance_id,
    any(host_name) AS host_name,
    scheduler_cost_model,
    graph_name,
    next_best_graph,
    count() AS decisions,
    countIf(abs(margin_percent) < {near_tie_percent:Float64}) AS near_ties,
    near_ties / decisions AS near_tie_fraction,
    countIf(margin_percent < 0) AS against_estimates,
    (quantilesExact(0.1, 0.5, 0.9)(margin_percent) AS margins)[2] AS margin_median_percent,
    margins[1] AS margin_p10_percent,
    margins[3] AS margin_p90_percent
FROM
(
    SELECT
        service_instance_id,
        host_name,
        scheduler_cost_model,
        graph_name,
        arrayMap((tokens, estimate) -> tokens / estimate, scheduler_candidate_expected_tokens, scheduler_candidate_estimates_ns) AS rates,
        indexOf(scheduler_candidate_graphs, graph_name) AS chosen,
        arrayMap((rate, position) -> if(position = chosen, -1, rate), rates, arrayEnumerate(rates)) AS other_rates,
        arrayMax(other_rates) AS next_best_rate,
        scheduler_candidate_graphs[indexOf(other_rates, next_best_rate)] AS next_best_graph,
        100 * (rates[chosen] / next_best_rate - 1) AS margin_percent
    FROM selected
    WHERE graph_purpose = 'ordinary'
        AND graph_kind IN ('plain_decode', 'speculative')
        AND has(scheduler_candidate_graphs, graph_name)
        AND length(scheduler_candidate_graphs) > 1
        AND length(scheduler_candidate_graphs) = length(scheduler_candidate_estimates_ns)
        AND length(scheduler_candidate_graphs) = length(scheduler_candidate_expected_tokens)
        AND arrayAll(estimate -> estimate > 0, scheduler_candidate_estimates_ns)
)
WHERE next_best_rate > 0
GROUP BY service_instance_id, scheduler_cost_model, graph_name, next_best_graph
ORDER BY near_ties DESC, decisions DESC, service_instance_id, graph_name, next_best_graph
LIMIT {limit:UInt64}
