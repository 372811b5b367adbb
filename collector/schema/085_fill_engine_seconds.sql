-- Adds each insert to engine_seconds. Whatever is stored, it must not fail: an insert that a view refuses is refused whole.
CREATE MATERIALIZED VIEW IF NOT EXISTS fill_engine_seconds TO engine_seconds AS
SELECT
    toDate(received_at) AS received_on,
    toStartOfSecond(started_at)::DateTime('UTC') AS second_started_at,
    service_instance_id, host_name, engine_package, engine_recipe,
    count() AS executions,
    sum(batch_tokens_emitted) AS tokens_emitted,
    sum(graph_gpu_time_ns) AS gpu_time_ns,
    sum(graph_wall_time_ns) AS wall_time_ns,
    sumIf(graph_wall_time_ns, graph_purpose = 'ordinary' AND graph_kind = 'plain_decode') AS plain_wall_time_ns,
    sumIf(graph_wall_time_ns, graph_purpose = 'ordinary' AND graph_kind = 'speculative') AS speculative_wall_time_ns,
    count(graph_queue_depth) AS depths_recorded,
    ifNull(sum(graph_queue_depth), 0) AS depths_sum,
    max(graph_queue_depth) AS depth_max,
    countIf(graph_queue_depth = 0 AND NOT graph_after_idle) AS drained_executions
FROM graph_executions
GROUP BY received_on, second_started_at, service_instance_id, host_name, engine_package, engine_recipe
