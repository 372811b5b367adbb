-- part: Each cell asked for with its figures, out of the rollup, and whether it is stuck.
-- uses: windows_nearby, engine_graphs
-- parameter arm: String = '' | cell_arm; '' is any.
-- parameter cell: String = '' | One cell: the benchmark's cell_id, or the start of a 30 s window in Unix seconds; '' is any.
-- parameter to: DateTime64(9, 'UTC') = 2200-01-01 00:00:00 | Executions submitted before this instant.
-- parameter stuck_above: Float64 = 0.3 | A cell is stuck when its plain fraction is above this.
-- parameter minimum_decoding_s: Float64 = 3 | No verdict of stuck before a cell has this much ordinary decoding, in s, so that the first rounds of a live window raise no flag.
SELECT
    c.service_instance_id AS service_instance_id,
    c.cell AS cell,
    host_name, service_name, engine_name, engine_version, engine_package, engine_recipe, scheduler_cost_model,
    cell_id, cell_arm, cell_position, cell_concurrency,
    cell_started_at AS started_at,
    cell_ended_at AS ended_at,
    cell_received_at AS last_received_at,
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
    tokens AS batch_tokens_emitted,
    batch_tokens_emitted / nullIf(elapsed_s, 0) AS tokens_per_s,
    gpu_ns / 1e9 / nullIf(elapsed_s, 0) AS gpu_busy_fraction
FROM
(
    SELECT
        service_instance_id,
        cell,
        max(n.host_name) AS host_name,
        max(n.service_name) AS service_name,
        max(n.engine_name) AS engine_name,
        max(n.engine_version) AS engine_version,
        max(n.engine_package) AS engine_package,
        max(n.engine_recipe) AS engine_recipe,
        max(cost_model_latest).2 AS scheduler_cost_model,
        max(n.cell_id) AS cell_id,
        max(n.cell_arm) AS cell_arm,
        max(n.cell_position) AS cell_position,
        max(n.cell_concurrency) AS cell_concurrency,
        min(first_started_at) AS cell_started_at,
        max(last_ended_at) AS cell_ended_at,
        max(n.last_received_at) AS cell_received_at,
        sum(executions) AS cell_executions,
        toUInt64(max(sequence_last) - min(sequence_first) + 1 - groupBitmapMerge(sequences)) AS executions_lost,
        sum(plain_wall_time_ns) AS plain_ns,
        sum(speculative_wall_time_ns) AS speculative_ns,
        sum(plain_executions) AS plain_rounds,
        sum(speculative_executions) AS speculative_rounds,
        sum(tokens_emitted) AS tokens,
        sum(gpu_time_ns) AS gpu_ns
    FROM windows_nearby AS n
    WHERE ({arm:String} = '' OR n.cell_arm = {arm:String})
        AND ({cell:String} = '' OR cell = {cell:String})
    GROUP BY service_instance_id, cell
    HAVING max(last_started_at) >= since AND cell_started_at < {to:DateTime64(9, 'UTC')}
) AS c
LEFT JOIN engine_graphs AS g ON g.service_instance_id = c.service_instance_id
