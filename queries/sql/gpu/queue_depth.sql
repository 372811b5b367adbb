-- question: How full is each host's queue over time?
-- uses: selected
-- parameter step_s: UInt32 = 10 | Length of a step, in s.
-- parameter limit: UInt64 = 50000 | At most so many rows, earliest first.
-- column host_name [] | Host.
-- column step_started_at [time] | Start of the step.
-- column executions [executions] | Executions submitted in the step.
-- column queue_depth_mean [submissions] | Mean of submissions in flight at submission; empty where none was recorded.
-- column queue_depth_max [submissions] | The most.
-- column drained_executions [executions] | Executions submitted to an empty queue while the engine had work.
-- column drained_fraction [fraction] | drained_executions / executions whose depth was recorded.
-- table: host_name, step_started_at, executions, queue_depth_mean, queue_depth_max, drained_executions, drained_fraction
-- example: tachograph query queue_depth --param host=gpu-node-024 --param step_s=1
SELECT
    host_name,
    fromUnixTimestamp64Nano(intDiv(toUnixTimestamp64Nano(started_at), {step_s:UInt32} * 1000000000) * {step_s:UInt32} * 1000000000, 'UTC') AS step_started_at,
    count() AS executions,
    avg(graph_queue_depth) AS queue_depth_mean,
    max(graph_queue_depth) AS queue_depth_max,
    countIf(graph_queue_depth = 0 AND NOT graph_after_idle) AS drained_executions,
    drained_executions / nullIf(count(graph_queue_depth), 0) AS drained_fraction
FROM selected
GROUP BY host_name, step_started_at
ORDER BY host_name, step_started_at
LIMIT {limit:UInt64}
