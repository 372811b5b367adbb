-- Adds each insert to cell_graphs. Whatever is stored, it must not fail: an insert that a view refuses is refused whole.
CREATE MATERIALIZED VIEW IF NOT EXISTS fill_cell_graphs TO cell_graphs AS
SELECT
    toDate(received_at) AS received_on,
    service_instance_id,
    toStartOfInterval(started_at, INTERVAL 30 SECOND) AS window_started_at,
    if(e.cell_id != '', toString(e.cell_id), toString(toUnixTimestamp(window_started_at))) AS cell,
    host_name, engine_package, engine_recipe, cell_arm, graph_name, graph_kind,
    any(e.service_name) AS service_name,
    any(e.engine_name) AS engine_name,
    any(e.engine_version) AS engine_version,
    any(e.engine_tensor_parallel) AS engine_tensor_parallel,
    any(e.gpu_ids) AS gpu_ids,
    any(e.engine_attributes) AS engine_attributes,
    any(e.cell_id) AS cell_id,
    any(e.cell_position) AS cell_position,
    any(e.cell_concurrency) AS cell_concurrency,
    maxIf((started_at, toString(scheduler_cost_model)), scheduler_cost_model != '') AS cost_model_latest,
    min(started_at) AS first_started_at,
    max(started_at) AS last_started_at,
    max(addNanoseconds(started_at, duration_ns)) AS last_ended_at,
    max(received_at) AS last_received_at,
    max(least(started_at, toDateTime64(received_at, 9, 'UTC'))) AS newest_at,
    count() AS executions,
    min(graph_sequence) AS sequence_first,
    max(graph_sequence) AS sequence_last,
    sum(toUInt64(graph_sequence)) AS sequence_sum,
    sum(toUInt64(graph_sequence) * toUInt64(graph_sequence)) AS sequence_squares_sum,
    groupBitmapState(toUInt64(graph_sequence)) AS sequences,
    sum(graph_gpu_time_ns) AS gpu_time_ns,
    countIf(graph_purpose = 'ordinary') AS ordinary_executions,
    sumIf(graph_wall_time_ns, graph_purpose = 'ordinary') AS ordinary_wall_time_ns,
    sum(batch_tokens_emitted) AS tokens_emitted,
    quantilesDDState(0.01, 0.5, 0.9)(graph_gpu_time_ns) AS gpu_time_sketch,
    maxMapIf(graphs, estimates_ns, is_decision) AS charged_max_ns,
    maxMapIf(graphs, arrayMap(token -> token * estimates_ns[chosen] / greatest(tokens[chosen], 1e-9), tokens), is_decision) AS level_max_ns,
    groupUniqArrayArray(arrayFilter((graph, token) -> token > lanes, graphs, tokens)) AS promising_candidates
FROM
(
    SELECT
        -- Named one by one: of `*` every column is analysed, for each insert, used or not.
        service_instance_id, started_at, duration_ns, received_at, service_name, host_name,
        engine_name, engine_version, engine_package, engine_recipe, engine_tensor_parallel, gpu_ids, engine_attributes,
        graph_name, graph_kind, graph_purpose, graph_sequence, graph_gpu_time_ns, graph_wall_time_ns, batch_tokens_emitted,
        scheduler_cost_model, cell_id, cell_arm, cell_position, cell_concurrency,
        CAST(scheduler_candidate_graphs, 'Array(String)') AS graphs,
        arrayResize(scheduler_candidate_estimates_ns, length(graphs)) AS estimates_ns,
        -- Tokens that nobody recorded promise anything.
        arrayResize(scheduler_candidate_expected_tokens, length(graphs), 1e18) AS tokens,
        indexOf(graphs, graph_name) AS chosen,
        -- Plain decode promises one token a lane: where nobody says how many lanes there are, so many as it promises. Where it
        -- does not say that either, any promise is more.
        coalesce(toFloat64(batch_lanes), if(graph_kind = 'plain_decode' AND chosen BETWEEN 1 AND length(scheduler_candidate_expected_tokens),
            scheduler_candidate_expected_tokens[chosen], NULL), -1) AS lanes,
        chosen > 0 AND graph_purpose = 'ordinary' AND graph_kind IN ('plain_decode', 'speculative') AS is_decision
    FROM graph_executions
) AS e
GROUP BY received_on, service_instance_id, window_started_at, cell, host_name, engine_package, engine_recipe, cell_arm, graph_name, graph_kind
