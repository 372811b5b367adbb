-- question: How did each cell fare, and which are stuck in plain decode or judged by inflated estimates?
-- uses: verdicts
-- plan: turned_cells
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
-- column executions_lost [executions] | Gaps of graph_sequence between the first and the last stored execution of the cell.
-- column plain_fraction [fraction] | Share of ordinary decoding wall time spent in plain decode; empty without ordinary decoding.
-- column plain_fraction_by_rounds [fraction] | The same share counted in executions.
-- column plain_s [s] | Wall time of ordinary plain decode.
-- column speculative_s [s] | Wall time of ordinary speculative rounds.
-- column has_speculative [] | The engine has a speculative graph to choose from.
-- column stuck [] | plain_fraction is above stuck_above, the engine has a speculative graph and decoded for minimum_decoding_s.
-- column inflated [] | turned_s is at least inflated_above_s.
-- column turned_s [s] | Wall time of decisions that inflated estimates turned to a worse graph.
-- column decisions_turned [decisions] | Those decisions.
-- column batch_tokens_emitted [tokens] | Tokens emitted, all purposes; empty where none are reported.
-- column tokens_per_s [tokens/s] | batch_tokens_emitted / elapsed_s.
-- column gpu_busy_fraction [fraction] | GPU time / elapsed time.
-- table: host_name, cell, stuck, inflated, plain_fraction, tokens_per_s, engine_package, started_at, executions, executions_lost, cell_arm, turned_s, scheduler_cost_model
-- example: tachograph query cells --param host=gpu-node-024 --param from=-15m
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
    started_at,
    ended_at,
    last_received_at,
    elapsed_s,
    executions,
    executions_lost,
    plain_fraction,
    plain_fraction_by_rounds,
    plain_s,
    speculative_s,
    has_speculative,
    stuck,
    inflated,
    turned_s,
    decisions_turned,
    batch_tokens_emitted,
    tokens_per_s,
    gpu_busy_fraction
FROM verdicts
ORDER BY started_at DESC, service_instance_id, cell
LIMIT {limit:UInt64}
