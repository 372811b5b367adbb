-- part: Each cell asked for, with its figures and the verdicts stuck and inflated.
-- uses: selected, engine_graphs, inflation_by_cell
-- parameter stuck_above: Float64 = 0.3 | A cell is stuck when its plain fraction is above this.
-- parameter minimum_decoding_s: Float64 = 3 | No verdict of stuck before a cell has this much ordinary decoding, in s, so that the first rounds of a live window raise no flag.
-- parameter inflated_above_s: Float64 = 1 | A cell is inflated when inflated estimates turned decisions for at least this long, in s.
SELECT
    c.service_instance_id AS service_instance_id,
    c.cell AS cell,
    host_name, service_name, engine_name, engine_version, engine_package, engine_recipe, scheduler_cost_model,
    cell_id, cell_arm, cell_position, cell_concurrency,
    first_started_at AS started_at,
    last_ended_at AS ended_at,
    (toUnixTimestamp64Nano(ended_at) - toUnixTimestamp64Nano(started_at)) / 1e9 AS elapsed_s,
    executions,
    executions_lost,
    plain_ns / nullIf(plain_ns + speculative_ns, 0) AS plain_fraction,
    plain_rounds / nullIf(plain_rounds + speculative_rounds, 0) AS plain_fraction_by_rounds,
    plain_ns / 1e9 AS plain_s,
    speculative_ns / 1e9 AS speculative_s,
    toBool(g.has_speculative) AS has_speculative,
    toBool(
        ifNull(plain_fraction > {stuck_above:Float64}, false)
        AND has_speculative
        AND plain_s + speculative_s >= {minimum_decoding_s:Float64}
    ) AS stuck,
    i.turned_s AS turned_s,
    i.decisions_turned AS decisions_turned,
    toBool(turned_s >= {inflated_above_s:Float64}) AS inflated,
    batch_tokens_emitted,
    batch_tokens_emitted / nullIf(elapsed_s, 0) AS tokens_per_s,
    gpu_ns / 1e9 / nullIf(elapsed_s, 0) AS gpu_busy_fraction
FROM
(
    SELECT
        service_instance_id,
        cell,
        any(host_name) AS host_name,
        any(service_name) AS service_name,
        any(engine_name) AS engine_name,
        any(engine_version) AS engine_version,
        any(engine_package) AS engine_package,
        any(engine_recipe) AS engine_recipe,
        argMaxIf(scheduler_cost_model, started_at, scheduler_cost_model != '') AS scheduler_cost_model,
        any(cell_id) AS cell_id,
        any(cell_arm) AS cell_arm,
        any(cell_position) AS cell_position,
        any(cell_concurrency) AS cell_concurrency,
        min(s.started_at) AS first_started_at,
        max(addNanoseconds(s.started_at, s.duration_ns)) AS last_ended_at,
        count() AS executions,
        toUInt64(max(graph_sequence) - min(graph_sequence) + 1 - uniqExact(graph_sequence)) AS executions_lost,
        sumIf(graph_wall_time_ns, graph_kind = 'plain_decode' AND graph_purpose = 'ordinary') AS plain_ns,
        sumIf(graph_wall_time_ns, graph_kind = 'speculative' AND graph_purpose = 'ordinary') AS speculative_ns,
        countIf(graph_kind = 'plain_decode' AND graph_purpose = 'ordinary') AS plain_rounds,
        countIf(graph_kind = 'speculative' AND graph_purpose = 'ordinary') AS speculative_rounds,
        coalesce(sum(s.batch_tokens_emitted), 0) AS batch_tokens_emitted,
        sum(graph_gpu_time_ns) AS gpu_ns
    FROM selected AS s
    GROUP BY service_instance_id, cell
) AS c
LEFT JOIN engine_graphs AS g ON g.service_instance_id = c.service_instance_id
LEFT JOIN inflation_by_cell AS i ON i.service_instance_id = c.service_instance_id AND i.cell = c.cell
