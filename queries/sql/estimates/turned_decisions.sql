-- question: Which decisions would a better estimate have changed, to what, and what did each cost?
-- uses: decisions
-- plan: turned_cells
-- parameter limit: UInt64 = 10000 | At most so many decisions, earliest first.
-- column service_instance_id [] | The engine instance.
-- column cell [] | The cell.
-- column graph_sequence [] | Submission number of the decision's execution.
-- column started_at [time] | Submission, just after the decision.
-- column graph_name [] | The graph chosen.
-- column better_graph [] | The graph that would have won at measured costs.
-- column better_estimate_ns [ns] | What the scheduler charged for it.
-- column better_cost_ns [ns] | What it costs.
-- column overcharge_ratio [ratio] | better_estimate_ns / better_cost_ns.
-- column gain_percent [%] | Expected tokens/s of the better graph beyond those of the chosen one, at measured costs.
-- column graph_wall_time_ns [ns] | How long the round took that was chosen instead.
-- column tokens_lost [tokens] | Expected tokens lost by it.
-- table: graph_sequence, started_at, graph_name, better_graph, better_estimate_ns, better_cost_ns, gain_percent, tokens_lost, overcharge_ratio, cell
-- example: tachograph query turned_decisions --param cell=bench-r014
SELECT
    service_instance_id,
    cell,
    graph_sequence,
    started_at,
    graph_name,
    graphs[best] AS better_graph,
    estimates_ns[best] AS better_estimate_ns,
    assumeNotNull(costs_ns[best]) AS better_cost_ns,
    better_estimate_ns / better_cost_ns AS overcharge_ratio,
    100 * (rates[best] / rates[chosen] - 1) AS gain_percent,
    graph_wall_time_ns,
    (rates[best] - rates[chosen]) * graph_wall_time_ns AS tokens_lost
FROM decisions
WHERE turned
ORDER BY service_instance_id, started_at, graph_sequence
LIMIT {limit:UInt64}
