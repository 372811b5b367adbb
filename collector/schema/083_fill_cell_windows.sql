-- Adds each insert to cell_windows, out of what it added to cell_graphs: a few rows, whatever its size.
CREATE MATERIALIZED VIEW IF NOT EXISTS fill_cell_windows TO cell_windows AS
SELECT
    received_on, window_started_at, service_instance_id, cell, host_name, engine_package, engine_recipe, cell_arm,
    max(g.service_name) AS service_name,
    max(g.engine_name) AS engine_name,
    max(g.engine_version) AS engine_version,
    max(g.engine_tensor_parallel) AS engine_tensor_parallel,
    max(g.gpu_ids) AS gpu_ids,
    max(g.engine_attributes) AS engine_attributes,
    max(g.cell_id) AS cell_id,
    max(g.cell_position) AS cell_position,
    max(g.cell_concurrency) AS cell_concurrency,
    max(g.cost_model_latest) AS cost_model_latest,
    min(g.first_started_at) AS first_started_at,
    max(g.last_started_at) AS last_started_at,
    max(g.last_ended_at) AS last_ended_at,
    max(g.last_received_at) AS last_received_at,
    max(g.newest_at) AS newest_at,
    sum(g.executions) AS executions,
    min(g.sequence_first) AS sequence_first,
    max(g.sequence_last) AS sequence_last,
    groupBitmapMergeState(g.sequences) AS sequences,
    sum(g.gpu_time_ns) AS gpu_time_ns,
    sum(g.tokens_emitted) AS tokens_emitted,
    sumIf(ordinary_executions, graph_kind = 'plain_decode') AS plain_executions,
    sumIf(ordinary_executions, graph_kind = 'speculative') AS speculative_executions,
    sumIf(ordinary_wall_time_ns, graph_kind = 'plain_decode') AS plain_wall_time_ns,
    sumIf(ordinary_wall_time_ns, graph_kind = 'speculative') AS speculative_wall_time_ns,
    groupUniqArray(graph_name) AS graphs,
    groupUniqArrayIf(graph_name, graph_kind = 'speculative') AS speculative_graphs,
    groupUniqArrayArray(g.promising_candidates) AS promising_candidates
FROM cell_graphs AS g
GROUP BY received_on, window_started_at, service_instance_id, cell, host_name, engine_package, engine_recipe, cell_arm
