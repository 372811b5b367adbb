-- question: How many tokens/s does each package give, by concurrency?
-- uses: cell_figures
-- parameter limit: UInt64 = 10000 | At most so many rows.
-- column host_name [] | Host.
-- column engine_package [] | Build under test.
-- column engine_recipe [] | Configuration under test.
-- column cell_concurrency [requests] | Requests in flight, as the benchmark set it; empty outside benchmarks.
-- column cells [cells] | Cells that report their tokens.
-- column tokens_per_s_mean [tokens/s] | Tokens emitted in all of them / their elapsed time.
-- column tokens_per_s_median [tokens/s] | Median of the cells' tokens/s.
-- column tokens_per_s_min [tokens/s] | The slowest cell.
-- column tokens_per_s_max [tokens/s] | The fastest cell.
-- column cells_stuck [cells] | Cells stuck in plain decode.
-- table: host_name, engine_package, engine_recipe, cell_concurrency, cells, tokens_per_s_mean, tokens_per_s_median, tokens_per_s_min, tokens_per_s_max, cells_stuck
-- example: tachograph query tokens_by_concurrency --param package=main-9a44b2
SELECT
    host_name,
    engine_package,
    engine_recipe,
    cell_concurrency,
    count() AS cells,
    sum(batch_tokens_emitted) / nullIf(sum(elapsed_s), 0) AS tokens_per_s_mean,
    (quantilesExact(0, 0.5, 1)(assumeNotNull(tokens_per_s)) AS of_cells)[2] AS tokens_per_s_median,
    of_cells[1] AS tokens_per_s_min,
    of_cells[3] AS tokens_per_s_max,
    countIf(stuck) AS cells_stuck
FROM cell_figures
WHERE tokens_per_s IS NOT NULL
GROUP BY host_name, engine_package, engine_recipe, cell_concurrency
ORDER BY host_name, engine_package, engine_recipe, cell_concurrency
LIMIT {limit:UInt64}
