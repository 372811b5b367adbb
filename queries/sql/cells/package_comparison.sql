-- question: How do packages, hosts and recipes compare: stuck cells, plain decode, tokens/s, losses?
-- uses: verdicts
-- plan: turned_cells
-- parameter limit: UInt64 = 10000 | At most so many rows.
-- column engine_package [] | Build under test.
-- column host_name [] | Host.
-- column engine_recipe [] | Configuration under test.
-- column cell_arm [] | Arm of the comparison.
-- column scheduler_cost_model [] | Cost model of the scheduler.
-- column cells [cells] | Cells.
-- column cells_stuck [cells] | Cells stuck in plain decode.
-- column cells_inflated [cells] | Cells where inflated estimates turned decisions for inflated_above_s.
-- column plain_fraction [fraction] | Share of ordinary decoding wall time spent in plain decode, over all cells.
-- column plain_fraction_by_rounds [fraction] | The same share counted in executions; empty without ordinary decoding.
-- column tokens_per_s_mean [tokens/s] | Tokens emitted in all cells that report them / their elapsed time.
-- column tokens_per_s_median [tokens/s] | Median of the cells' tokens/s.
-- column executions_lost [executions] | Gaps of graph_sequence within the cells.
-- table: engine_package, host_name, engine_recipe, cell_arm, cells, cells_stuck, cells_inflated, plain_fraction, tokens_per_s_mean, tokens_per_s_median, executions_lost, scheduler_cost_model
-- example: tachograph query package_comparison --param recipe=c32-P64+P108+P128
SELECT
    engine_package,
    host_name,
    engine_recipe,
    cell_arm,
    scheduler_cost_model,
    count() AS cells,
    countIf(stuck) AS cells_stuck,
    countIf(inflated) AS cells_inflated,
    sum(v.plain_s) / nullIf(sum(v.plain_s) + sum(v.speculative_s), 0) AS plain_fraction,
    sum(plain_rounds) / nullIf(sum(plain_rounds) + sum(speculative_rounds), 0) AS plain_fraction_by_rounds,
    sum(batch_tokens_emitted) / nullIf(sumIf(elapsed_s, batch_tokens_emitted IS NOT NULL), 0) AS tokens_per_s_mean,
    quantileExact(0.5)(tokens_per_s) AS tokens_per_s_median,
    sum(v.executions_lost) AS executions_lost
FROM verdicts AS v
GROUP BY engine_package, host_name, engine_recipe, cell_arm, scheduler_cost_model
ORDER BY engine_package, host_name, engine_recipe, cell_arm, scheduler_cost_model
LIMIT {limit:UInt64}
