-- question: What does each engine do, second by second?
-- parameter from: DateTime64(9, 'UTC') = -10m | From this second on.
-- parameter to: DateTime64(9, 'UTC') = 2200-01-01 00:00:00 | Before this instant.
-- parameter service_instance_id: String = '' | One engine instance; '' is any.
-- parameter host: String = '' | host_name; '' is any.
-- parameter package: String = '' | engine_package; '' is any.
-- parameter recipe: String = '' | engine_recipe; '' is any.
-- parameter step_s: UInt32 = 1 | Length of a step, in s.
-- parameter limit: UInt64 = 50000 | At most so many rows, earliest first.
-- column service_instance_id [] | The engine instance.
-- column host_name [] | Host.
-- column step_started_at [time] | Start of the step; of a clock beyond 7 February 2106 too early by 2^32 s, as seconds are stored in 32 bits.
-- column executions [executions] | Executions submitted in the step.
-- column batch_tokens_emitted [tokens] | Tokens that they emitted; empty where none says how many.
-- column tokens_per_wall_s [tokens/s] | Tokens emitted / wall time; empty without either.
-- column plain_s [s] | Wall time of ordinary plain decode.
-- column speculative_s [s] | Wall time of ordinary speculative rounds.
-- column queue_depth_mean [submissions] | Mean of submissions in flight at submission; empty where none was recorded.
-- column queue_depth_max [submissions] | The most.
-- column drained_executions [executions] | Executions submitted to an empty queue while the engine had work.
-- table: host_name, service_instance_id, step_started_at, executions, tokens_per_wall_s, plain_s, speculative_s, queue_depth_mean, drained_executions
-- example: tachograph query live_seconds --param from=-1m --param host=gpu-node-024
SELECT
    service_instance_id,
    max(s.host_name) AS host_name,
    toDateTime64(toStartOfInterval(second_started_at, toIntervalSecond({step_s:UInt32})), 0, 'UTC') AS step_started_at,
    sum(s.executions) AS executions,
    sum(tokens_emitted) AS batch_tokens_emitted,
    batch_tokens_emitted * 1e9 / nullIf(sum(wall_time_ns), 0) AS tokens_per_wall_s,
    sum(plain_wall_time_ns) / 1e9 AS plain_s,
    sum(speculative_wall_time_ns) / 1e9 AS speculative_s,
    sum(depths_sum) / nullIf(sum(depths_recorded), 0) AS queue_depth_mean,
    max(depth_max) AS queue_depth_max,
    sum(s.drained_executions) AS drained_executions
FROM engine_seconds AS s
WHERE second_started_at >= toStartOfSecond({from:DateTime64(9, 'UTC')})
    AND second_started_at < {to:DateTime64(9, 'UTC')}
    AND ({service_instance_id:String} = '' OR service_instance_id = {service_instance_id:String})
    AND ({host:String} = '' OR s.host_name = {host:String})
    AND ({package:String} = '' OR engine_package = {package:String})
    AND ({recipe:String} = '' OR engine_recipe = {recipe:String})
GROUP BY service_instance_id, step_started_at
ORDER BY step_started_at, service_instance_id
LIMIT {limit:UInt64}
