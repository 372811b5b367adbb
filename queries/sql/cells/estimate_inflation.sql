-- question: Which graphs were charged more than they cost, in which cell, since when, and did it change decisions?
-- uses: overcharged_graphs, labels
-- plan: charged_cells
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
-- table: host_name, cell, graph, inflated, cost_ns, estimate_max_ns, ratio_max, decisions_turned, turned_s, decisions_overcharged, estimate_mean_ns, overcharged_since, measured_in
-- example: tachograph query estimate_inflation --param cell=bench-r014
SELECT
    o.service_instance_id AS service_instance_id,
    o.cell AS cell,
    host_name, engine_name, engine_package, engine_recipe, scheduler_cost_model,
    graph,
    cost_ns,
    gpu_time_median_ns,
    measured_in,
    estimate_mean_ns,
    estimate_max_ns,
    estimate_mean_ns / cost_ns AS ratio_mean,
    estimate_max_ns / cost_ns AS ratio_max,
    decisions,
    decisions_overcharged,
    if(decisions_overcharged > 0, since_overcharged, NULL) AS overcharged_since,
    if(decisions_overcharged > 0, until_overcharged, NULL) AS overcharged_until,
    decisions_turned,
    turned_s,
    tokens_lost,
    toBool(turned_s >= {inflated_above_s:Float64}) AS inflated
FROM overcharged_graphs AS o
INNER JOIN labels AS l ON l.service_instance_id = o.service_instance_id AND l.cell = o.cell
ORDER BY turned_s DESC, decisions_overcharged DESC, service_instance_id, cell, graph
LIMIT {limit:UInt64}
