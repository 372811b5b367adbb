-- question: Which graphs were charged more than they cost, in which cell, as the cells were judged last?
-- uses: cells_told
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
-- column judged [] | All executions of the cell are counted; else those that were stored when it was judged last.
-- column judged_at [time] | When it was judged last; empty where it never was.
-- table: host_name, cell, graph, inflated, cost_ns, estimate_max_ns, ratio_max, decisions_turned, turned_s, decisions_overcharged, estimate_mean_ns, overcharged_since, measured_in
-- example: tachograph query live_inflation --param cell=bench-r014
SELECT
    service_instance_id,
    cell,
    host_name, engine_name, engine_package, engine_recipe, scheduler_cost_model,
    one.graph AS graph,
    one.cost_ns AS cost_ns,
    one.gpu_time_median_ns AS gpu_time_median_ns,
    one.measured_in AS measured_in,
    one.estimate_mean_ns AS estimate_mean_ns,
    one.estimate_max_ns AS estimate_max_ns,
    estimate_mean_ns / cost_ns AS ratio_mean,
    estimate_max_ns / cost_ns AS ratio_max,
    one.decisions AS decisions,
    one.decisions_overcharged AS decisions_overcharged,
    nullIf(one.overcharged_since, toDateTime64(0, 9, 'UTC')) AS overcharged_since,
    nullIf(one.overcharged_until, toDateTime64(0, 9, 'UTC')) AS overcharged_until,
    one.decisions_turned AS decisions_turned,
    one.turned_s AS turned_s,
    one.tokens_lost AS tokens_lost,
    toBool(turned_s >= {inflated_above_s:Float64}) AS inflated,
    toBool(judged_executions = cell_executions) AS judged,
    nullIf(t.judged_at, toDateTime64(0, 3, 'UTC')) AS judged_at
FROM cells_told AS t
ARRAY JOIN judged_inflation AS one
ORDER BY turned_s DESC, decisions_overcharged DESC, service_instance_id, cell, graph
LIMIT {limit:UInt64}
