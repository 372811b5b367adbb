-- part: Of each cell to be judged: at the decisions that chose plain decode, what it gave and what the best speculative graph would have given, both at measured costs; and at all of them, how many of them inflated estimates turned, and for how long.
-- uses: decisions, engine_graphs
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
