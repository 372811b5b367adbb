-- question: Which cells are stuck in plain decode, since when, and what would the best speculative graph have given?
-- uses: cell_figures, plain_stretches, plain_alternatives
-- plan: stuck_or_turned_cells
-- parameter inflated_above_s: Float64 = 1 | A cell is inflated when inflated estimates turned decisions for at least this long, in s.
-- parameter limit: UInt64 = 1000 | At most so many cells, worst first.
-- column service_instance_id [] | The engine instance.
-- column cell [] | The cell.
-- column host_name [] | Host of the engine.
-- column engine_name [] | Engine.
-- column engine_package [] | Build under test.
-- column engine_recipe [] | Configuration under test.
-- column scheduler_cost_model [] | Cost model of the scheduler.
-- column cell_arm [] | Arm of the comparison.
-- column cell_concurrency [] | Requests in flight, as the benchmark set it.
-- column started_at [time] | First submission of the cell.
-- column ended_at [time] | Last observed completion of the cell.
-- column plain_fraction [fraction] | Share of ordinary decoding wall time spent in plain decode.
-- column plain_s [s] | Wall time of ordinary plain decode.
-- column plain_since [time] | Submission of the first round of the stretch of plain decode that lasted longest within the cell; it may lie before the cell.
-- column plain_stretch_s [s] | From there to the last observed completion of the stretch.
-- column tokens_per_s [tokens/s] | Tokens emitted / elapsed time of the cell; empty where none are reported.
-- column plain_tokens_per_s [tokens/s] | Mean of expected tokens / measured cost of the plain rounds, weighted by their wall time.
-- column speculative_tokens_per_s [tokens/s] | The same of the best speculative candidate at those very decisions; empty where its cost was never measured, or not with such a batch though times go with it.
-- column best_speculative_graph [] | The speculative candidate that was best most often.
-- column gain_percent [%] | What that would have given beyond plain decode; negative where plain decode was right.
-- column turned_s [s] | Wall time of decisions that inflated estimates turned to a worse graph.
-- column inflated [] | turned_s is at least inflated_above_s: stuck by the scheduler's own estimates.
-- table: host_name, cell, plain_fraction, plain_since, plain_stretch_s, tokens_per_s, inflated, gain_percent, best_speculative_graph, engine_package, turned_s, scheduler_cost_model
-- example: tachograph query stuck_plain --param from=-1h
SELECT
    v.service_instance_id AS service_instance_id,
    v.cell AS cell,
    host_name, engine_name, engine_package, engine_recipe, scheduler_cost_model, cell_arm, cell_concurrency,
    started_at, ended_at,
    plain_fraction,
    plain_s,
    s.plain_since AS plain_since,
    (toUnixTimestamp64Nano(s.plain_until) - toUnixTimestamp64Nano(s.plain_since)) / 1e9 AS plain_stretch_s,
    tokens_per_s,
    plain_tokens_per_s,
    speculative_tokens_per_s,
    best_speculative_graph,
    100 * (speculative_tokens_per_s / plain_tokens_per_s - 1) AS gain_percent,
    turned_s,
    toBool(turned_s >= {inflated_above_s:Float64}) AS inflated
FROM cell_figures AS v
INNER JOIN plain_stretches AS s ON s.service_instance_id = v.service_instance_id
LEFT JOIN plain_alternatives AS e ON e.service_instance_id = v.service_instance_id AND e.cell = v.cell
WHERE v.stuck AND s.plain_since < v.ended_at AND s.plain_until > v.started_at
ORDER BY
    plain_fraction DESC,
    plain_s DESC,
    service_instance_id,
    cell,
    least(s.plain_until, v.ended_at) - greatest(s.plain_since, v.started_at) DESC
LIMIT 1 BY service_instance_id, cell
LIMIT {limit:UInt64}
