-- question: How does each cell fare, at a glance: out of rollups, with inflated estimates as they were judged last?
-- uses: cells_told
-- parameter inflated_above_s: Float64 = 1 | A cell is inflated when inflated estimates turned decisions for at least this long, in s.
-- parameter limit: UInt64 = 10000 | At most so many cells, newest first.
-- column service_instance_id [] | The engine instance.
-- column cell [] | The cell, unique within its instance: the benchmark's cell_id, else the start of its 30 s window in Unix seconds.
-- column host_name [] | Host of the engine.
-- column service_name [] | OpenTelemetry service of the engine.
-- column engine_name [] | Engine.
-- column engine_version [] | Version of the engine.
-- column engine_package [] | Build under test.
-- column engine_recipe [] | Configuration under test.
-- column scheduler_cost_model [] | Cost model of its latest execution that names one.
-- column cell_id [] | The benchmark's mark; '' for a tumbling window.
-- column cell_arm [] | Arm of the comparison.
-- column cell_position [] | Position in the benchmark's order.
-- column cell_concurrency [] | Requests in flight, as the benchmark set it.
-- column started_at [time] | First submission.
-- column ended_at [time] | Last observed completion.
-- column last_received_at [time] | Last arrival, by the collector's clock: before ended_at where the engine's clock is ahead.
-- column elapsed_s [s] | ended_at - started_at.
-- column executions [executions] | Stored executions.
-- column executions_lost [executions] | Gaps of graph_sequence between the first and the last stored execution of the cell, as long as no number is stored twice.
-- column plain_fraction [fraction] | Share of ordinary decoding wall time spent in plain decode; empty without ordinary decoding.
-- column plain_fraction_by_rounds [fraction] | The same share counted in executions.
-- column plain_s [s] | Wall time of ordinary plain decode.
-- column speculative_s [s] | Wall time of ordinary speculative rounds.
-- column has_speculative [] | The engine has a speculative graph to choose from.
-- column stuck [] | plain_fraction is above stuck_above, the engine has a speculative graph and decoded for minimum_decoding_s.
-- column inflated [] | turned_s is at least inflated_above_s.
-- column turned_s [s] | Wall time of decisions that inflated estimates turned to a worse graph, as judged last.
-- column decisions_turned [decisions] | Those decisions.
-- column batch_tokens_emitted [tokens] | Tokens emitted, all purposes; empty where none are reported.
-- column tokens_per_s [tokens/s] | batch_tokens_emitted / elapsed_s.
-- column gpu_busy_fraction [fraction] | GPU time / elapsed time.
-- column judged [] | turned_s counts all of its stored executions; else those that were stored when it was judged last, seconds ago in a store whose collector runs.
-- column judged_at [time] | When it was judged last; empty where it never was.
-- column whole [] | The cell has ended and was judged after that, by all its executions, with something to compare where it is stuck. Until then, not inflated means not found so far; inflated counts at once.
-- table: host_name, cell, stuck, inflated, plain_fraction, tokens_per_s, engine_package, started_at, executions, executions_lost, cell_arm, turned_s, scheduler_cost_model
-- example: tachograph query live_cells --param from=-30m
SELECT
    service_instance_id,
    cell,
    host_name,
    service_name,
    engine_name,
    engine_version,
    engine_package,
    engine_recipe,
    scheduler_cost_model,
    cell_id,
    cell_arm,
    cell_position,
    cell_concurrency,
    cell_started_at AS started_at,
    cell_ended_at AS ended_at,
    cell_received_at AS last_received_at,
    elapsed_s,
    cell_executions AS executions,
    executions_lost,
    plain_fraction,
    plain_rounds / nullIf(plain_rounds + speculative_rounds, 0) AS plain_fraction_by_rounds,
    plain_ns / 1e9 AS plain_s,
    speculative_ns / 1e9 AS speculative_s,
    toBool(can_speculate) AS has_speculative,
    toBool(is_stuck) AS stuck,
    toBool(turned_s >= {inflated_above_s:Float64}) AS inflated,
    judged_turned_s AS turned_s,
    judged_decisions_turned AS decisions_turned,
    -- Of an engine that reports none; whoever decodes emits some.
    tokens AS batch_tokens_emitted,
    batch_tokens_emitted / nullIf(elapsed_s, 0) AS tokens_per_s,
    gpu_ns / 1e9 / nullIf(elapsed_s, 0) AS gpu_busy_fraction,
    toBool(judged_executions = executions) AS judged,
    nullIf(t.judged_at, toDateTime64(0, 3, 'UTC')) AS judged_at,
    toBool(is_whole) AS whole
FROM cells_told AS t
ORDER BY started_at DESC, service_instance_id, cell
LIMIT {limit:UInt64}
