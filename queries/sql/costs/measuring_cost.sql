-- question: What do refreshes and acceptance probes cost?
-- uses: selected
-- parameter limit: UInt64 = 10000 | At most so many rows.
-- column service_instance_id [] | The engine instance.
-- column host_name [] | Host.
-- column graph_purpose [] | `refresh`: an unused graph measured again. `acceptance_probe`: its acceptance measured again.
-- column graph_name [] | The graph measured.
-- column executions [executions] | How often.
-- column measuring_s [s] | Their wall time.
-- column measuring_fraction [fraction] | measuring_s / wall time of everything the instance executed.
-- column tokens_per_execution [tokens] | Mean tokens emitted: what they gave all the same.
-- column period_mean_s [s] | Mean time from one to the next; empty below two of them.
-- table: host_name, graph_purpose, graph_name, executions, measuring_s, measuring_fraction, tokens_per_execution, period_mean_s
-- example: tachograph query measuring_cost --param host=gpu-node-024
SELECT
    service_instance_id,
    any(host_name) AS host_name,
    graph_purpose,
    graph_name,
    sum(n) AS executions,
    sum(wall_ns) / 1e9 AS measuring_s,
    sum(wall_ns) / any(instance_wall_ns) AS measuring_fraction,
    sum(tokens) / nullIf(sum(with_tokens), 0) AS tokens_per_execution,
    (max(last_ns) - min(first_ns)) / 1e9 / nullIf(executions - 1, 0) AS period_mean_s
FROM
(
    SELECT
        service_instance_id,
        any(host_name) AS host_name,
        graph_purpose,
        graph_name,
        count() AS n,
        sum(graph_wall_time_ns) AS wall_ns,
        sum(wall_ns) OVER (PARTITION BY service_instance_id) AS instance_wall_ns,
        sum(batch_tokens_emitted) AS tokens,
        count(batch_tokens_emitted) AS with_tokens,
        min(toUnixTimestamp64Nano(started_at)) AS first_ns,
        max(toUnixTimestamp64Nano(started_at)) AS last_ns
    FROM selected
    GROUP BY service_instance_id, graph_purpose, graph_name
)
WHERE graph_purpose != 'ordinary'
GROUP BY service_instance_id, graph_purpose, graph_name
ORDER BY measuring_s DESC, service_instance_id, graph_purpose, graph_name
LIMIT {limit:UInt64}
