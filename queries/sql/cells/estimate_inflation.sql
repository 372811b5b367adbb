-- question: Which graphs were charged more than they cost, in which cell, since when, and did it change decisions?
-- uses: selected, decisions, measured_costs
-- parameter inflated_above_s: Float64 = 1 | Inflation that turned decisions for at least this long is marked inflated, in s.
-- parameter limit: UInt64 = 10000 | At most so many rows, the most time turned first.
-- column service_instance_id [] | The engine instance.
-- column cell [] | The cell.
-- column host_name [] | Host of the engine.
-- column engine_name [] | Engine.
-- column engine_package [] | Build under test.
-- column engine_recipe [] | Configuration under test.
-- column scheduler_cost_model [] | Cost model that made the estimates.
-- column graph [] | The graph that was charged too much.
-- column cost_ns [ns] | Its measured cost: median GPU time, and its gap or handoff where that is systematic.
-- column gpu_time_median_ns [ns] | Its median GPU time.
-- column measured_in [] | The cell where the cost was measured, where it did not execute in this one.
-- column estimate_mean_ns [ns] | Mean of what the scheduler charged for it, chosen or not.
-- column estimate_max_ns [ns] | The highest charge.
-- column ratio_mean [ratio] | estimate_mean_ns / cost_ns.
-- column ratio_max [ratio] | estimate_max_ns / cost_ns.
-- column decisions [decisions] | Ordinary decoding decisions that had it among their candidates.
-- column decisions_overcharged [decisions] | Those that charged it more than overcharge_above over the 90th percentile of its cost.
-- column overcharged_since [time] | The first of those.
-- column overcharged_until [time] | The last of those.
-- column decisions_turned [decisions] | Decisions that it would have won at its measured cost.
-- column turned_s [s] | Wall time of the decisions turned.
-- column tokens_lost [tokens] | Expected tokens lost by the decisions turned, at measured costs.
-- column inflated [] | turned_s is at least inflated_above_s.
-- table: host_name, cell, graph, cost_ns, estimate_mean_ns, estimate_max_ns, ratio_max, decisions_overcharged, decisions_turned, turned_s, overcharged_since, inflated
-- example: tachograph query estimate_inflation --param cell=bench-r014
SELECT
    d.service_instance_id AS service_instance_id,
    d.cell AS cell,
    any(host_name) AS host_name,
    any(engine_name) AS engine_name,
    any(engine_package) AS engine_package,
    any(engine_recipe) AS engine_recipe,
    any(scheduler_cost_model) AS scheduler_cost_model,
    graph,
    any(m.cost_ns) AS cost_ns,
    any(m.gpu_time_median_ns) AS gpu_time_median_ns,
    any(m.measured_in) AS measured_in,
    avg(estimate_ns) AS estimate_mean_ns,
    max(estimate_ns) AS estimate_max_ns,
    estimate_mean_ns / cost_ns AS ratio_mean,
    estimate_max_ns / cost_ns AS ratio_max,
    count() AS decisions,
    countIf(is_overcharged) AS decisions_overcharged,
    minIf(started_at, is_overcharged) AS overcharged_since,
    maxIf(started_at, is_overcharged) AS overcharged_until,
    countIf(is_turned) AS decisions_turned,
    sumIf(graph_wall_time_ns, is_turned) / 1e9 AS turned_s,
    sumIf(tokens_short, is_turned) AS tokens_lost,
    turned_s >= {inflated_above_s:Float64} AS inflated
FROM
(
    SELECT
        service_instance_id,
        cell,
        host_name, engine_name, engine_package, engine_recipe, scheduler_cost_model,
        started_at,
        graph_wall_time_ns,
        graph,
        estimate_ns,
        is_overcharged,
        turned AND position = best AS is_turned,
        (rates[best] - rates[chosen]) * graph_wall_time_ns AS tokens_short
    FROM decisions
    ARRAY JOIN graphs AS graph, estimates_ns AS estimate_ns, overcharged AS is_overcharged, arrayEnumerate(graphs) AS position
) AS d
INNER JOIN measured_costs AS m ON m.service_instance_id = d.service_instance_id AND m.cell = d.cell AND m.graph = d.graph
GROUP BY service_instance_id, cell, graph
HAVING decisions_overcharged > 0 OR decisions_turned > 0
ORDER BY turned_s DESC, decisions_overcharged DESC, service_instance_id, cell, graph
LIMIT {limit:UInt64}
