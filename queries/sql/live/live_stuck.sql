-- question: Which cells are stuck in plain decode, at a glance: out of rollups, with causes as they were judged last?
-- uses: cells_told
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
-- column judged [] | The columns from plain_since on count all executions of the cell; else those that were stored when it was judged last; empty before.
-- column judged_at [time] | When it was judged last; empty where it never was.
-- column whole [] | The cell has ended and was judged after that, by all its executions, with something to compare where it is stuck. Until then, not inflated means not found so far; inflated counts at once.
-- table: host_name, cell, plain_fraction, plain_since, plain_stretch_s, tokens_per_s, inflated, gain_percent, best_speculative_graph, engine_package, turned_s, scheduler_cost_model
-- example: tachograph query live_stuck --param from=-30m
SELECT
    service_instance_id,
    cell,
    host_name, engine_name, engine_package, engine_recipe, scheduler_cost_model, cell_arm, cell_concurrency,
    cell_started_at AS started_at,
    cell_ended_at AS ended_at,
    plain_fraction,
    plain_ns / 1e9 AS plain_s,
    nullIf(judged_plain_since, toDateTime64(0, 9, 'UTC')) AS plain_since,
    (toUnixTimestamp64Nano(judged_plain_until) - toUnixTimestamp64Nano(plain_since)) / 1e9 AS plain_stretch_s,
    tokens / nullIf(elapsed_s, 0) AS tokens_per_s,
    nullIf(judged_plain_tokens_per_s, 0) AS plain_tokens_per_s,
    nullIf(judged_speculative_tokens_per_s, 0) AS speculative_tokens_per_s,
    judged_best_speculative_graph AS best_speculative_graph,
    100 * (speculative_tokens_per_s / plain_tokens_per_s - 1) AS gain_percent,
    judged_turned_s AS turned_s,
    toBool(turned_s >= {inflated_above_s:Float64}) AS inflated,
    toBool(judged_executions = cell_executions) AS judged,
    nullIf(t.judged_at, toDateTime64(0, 3, 'UTC')) AS judged_at,
    toBool(is_whole) AS whole
FROM cells_told AS t
WHERE is_stuck
ORDER BY plain_fraction DESC, plain_s DESC, service_instance_id, cell
LIMIT {limit:UInt64}
