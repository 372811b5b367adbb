-- question: How did each graph fare over time, on every engine, in steps of 30 s or more?
-- uses: selected
-- parameter steps: UInt32 = 1000 | A longer time, up to the newest arrival, is cut into about so many steps, each a multiple of 30 s.
-- parameter by_graph: Bool = true | One series for each graph; false takes all graphs of an engine together.
-- parameter limit: UInt64 = 10000 | At most so many rows, the earliest first.
-- column step_started_at [time] | Start of the step.
-- column step_s [s] | Length of a step.
-- column service_instance_id [] | The engine instance.
-- column host_name [] | Host.
-- column service_name [] | OpenTelemetry service.
-- column engine_name [] | Engine.
-- column engine_version [] | Version of the engine.
-- column engine_package [] | Build under test.
-- column engine_recipe [] | Configuration under test.
-- column scheduler_cost_model [] | Cost model of its executions; '' where none is named.
-- column cell_arm [] | Arm of the comparison.
-- column graph_name [] | The graph; '' where by_graph is false.
-- column executions [executions] | Stored executions, all purposes.
-- column gpu_time_median_ns [ns] | Median GPU time.
-- column handoff_median_ns [ns] | Median handoff of drained executions, the engine's own idleness left out; empty without any.
-- column acceptance_fraction [fraction] | Draft tokens accepted / verified, rounds that accepted none included; empty without drafts.
-- column tokens_per_wall_s [tokens/s] | Tokens emitted / wall time, in which the engine's own idleness has no part; empty without wall time.
-- column last_received_at [time] | Last arrival, by the collector's clock: before step_started_at where the engine's clock is ahead.
-- table: step_started_at, host_name, graph_name, gpu_time_median_ns, handoff_median_ns, acceptance_fraction, tokens_per_wall_s, engine_package, executions
-- example: tachograph query graph_history --param last_s=86400 --param host=gpu-node-024
SELECT
    -- An instant of 32 bits ends in 2106, and a clock may say more.
    toDateTime64(intDiv(toUnixTimestamp64Nano(s.started_at), 1000000000 * step) * step, 0, 'UTC') AS step_started_at,
    step AS step_s,
    service_instance_id,
    any(host_name) AS host_name,
    any(service_name) AS service_name,
    any(engine_name) AS engine_name,
    any(engine_version) AS engine_version,
    any(engine_package) AS engine_package,
    any(engine_recipe) AS engine_recipe,
    argMaxIf(s.scheduler_cost_model, s.started_at, s.scheduler_cost_model != '') AS scheduler_cost_model,
    any(cell_arm) AS cell_arm,
    if({by_graph:Bool}, toString(s.graph_name), '') AS graph_name,
    count() AS executions,
    toInt64(quantileExact(0.5)(graph_gpu_time_ns)) AS gpu_time_median_ns,
    if(countIf(graph_queue_depth = 0 AND NOT graph_after_idle) > 0,
        quantileExactIf(0.5)(graph_wall_time_ns - graph_gpu_time_ns, graph_queue_depth = 0 AND NOT graph_after_idle), NULL) AS handoff_median_ns,
    sumIf(s.batch_tokens_accepted, s.batch_tokens_accepted IS NOT NULL)
        / nullIf(sumIf(s.batch_tokens_drafted, s.batch_tokens_accepted IS NOT NULL), 0) AS acceptance_fraction,
    sum(s.batch_tokens_emitted) * 1e9 / nullIf(sum(graph_wall_time_ns), 0) AS tokens_per_wall_s,
    max(s.received_at) AS last_received_at
FROM selected AS s
CROSS JOIN
(
    -- Up to the newest arrival, where it lies within: one clock that is years ahead would make one step of everything else.
    SELECT
        toDateTime64(max(received_at), 9, 'UTC') AS newest_arrival,
        if(newest_arrival > min(started_at), least(newest_arrival, max(started_at)), max(started_at)) AS newest_at,
        toUInt32(least(4294967280, 30 * greatest(1, ceil(dateDiff('second', min(started_at), newest_at) / 30 / greatest({steps:UInt32}, 1))))) AS step
    FROM selected
) AS every
GROUP BY step, step_started_at, service_instance_id, graph_name
ORDER BY step_started_at, service_instance_id, graph_name
LIMIT {limit:UInt64}
