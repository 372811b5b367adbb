-- part: Of each cell to be judged, the graphs that were charged more than they cost.
-- uses: decisions, measured_costs
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
