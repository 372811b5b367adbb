-- part: Each cell asked for with its figures, out of the rollup, and whether it is stuck.
-- uses: cells_nearby, engine_graphs
-- parameter arm: String = '' | cell_arm; '' is any.
-- parameter cell: String = '' | One cell: the benchmark's cell_id, or the start of a 30 s window in Unix seconds; '' is any.
-- parameter stuck_above: Float64 = 0.3 | A cell is stuck when its plain fraction is above this.
-- parameter minimum_decoding_s: Float64 = 3 | No verdict of stuck before a cell has this much ordinary decoding, in s, so that the first rounds of a live window raise no flag.
SELECT
    c.service_instance_id AS service_instance_id,
    c.cell AS cell,
    host_name, service_name, engine_name, engine_version, engine_package, engine_recipe, scheduler_cost_model,
    cell_id, cell_arm, cell_position, cell_concurrency,
    cell_started_at AS started_at,
    cell_ended_at AS ended_at,
    (toUnixTimestamp64Nano(ended_at) - toUnixTimestamp64Nano(started_at)) / 1e9 AS elapsed_s,
    cell_executions AS executions,
    executions_lost,
    plain_ns / nullIf(plain_ns + speculative_ns, 0) AS plain_fraction,
    plain_rounds / nullIf(plain_rounds + speculative_rounds, 0) AS plain_fraction_by_rounds,
    plain_rounds,
    speculative_rounds,
    plain_ns / 1e9 AS plain_s,
    speculative_ns / 1e9 AS speculative_s,
    toBool(g.has_speculative) AS has_speculative,
    toBool(
        ifNull(plain_fraction > {stuck_above:Float64}, false)
        AND has_speculative
        AND plain_s + speculative_s >= {minimum_decoding_s:Float64}
    ) AS stuck,
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
        max(cost_model_latest).2 AS scheduler_cost_model,
        any(cell_id) AS cell_id,
        any(n.cell_arm) AS cell_arm,
        any(cell_position) AS cell_position,
        any(cell_concurrency) AS cell_concurrency,
        min(first_started_at) AS cell_started_at,
        max(last_ended_at) AS cell_ended_at,
        sum(executions) AS cell_executions,
        toUInt64(max(sequence_last) - min(sequence_first) + 1 - groupBitmapMerge(sequences)) AS executions_lost,
        sumIf(ordinary_wall_time_ns, graph_kind = 'plain_decode') AS plain_ns,
        sumIf(ordinary_wall_time_ns, graph_kind = 'speculative') AS speculative_ns,
        sumIf(ordinary_executions, graph_kind = 'plain_decode') AS plain_rounds,
        sumIf(ordinary_executions, graph_kind = 'speculative') AS speculative_rounds,
        sum(tokens_emitted) AS batch_tokens_emitted,
        sum(gpu_time_ns) AS gpu_ns
    FROM cells_nearby AS n
    WHERE ({arm:String} = '' OR n.cell_arm = {arm:String})
        AND ({cell:String} = '' OR cell = {cell:String})
    GROUP BY service_instance_id, cell
    HAVING max(last_started_at) >= asked.since AND cell_started_at < asked.until
) AS c
LEFT JOIN engine_graphs AS g ON g.service_instance_id = c.service_instance_id
