-- question: Which engine instances are there, and when was each last heard of?
-- uses: since, unsettled
-- parameter arm: String = '' | cell_arm; '' is any.
-- parameter cell: String = '' | One cell: the benchmark's cell_id, or the start of a 30 s window in Unix seconds; '' is any.
-- parameter to: DateTime64(9, 'UTC') = 2200-01-01 00:00:00 | Executions submitted before this instant.
-- parameter history_s: UInt32 = 600 | How long before the time asked for to look for what an engine can execute, what a graph costs and since when it decodes plainly, in s. A cell that began before the time asked for counts from its start, at most from there.
-- parameter service_instance_id: String = '' | One engine instance; '' is any.
-- parameter host: String = '' | host_name; '' is any.
-- parameter package: String = '' | engine_package; '' is any.
-- parameter recipe: String = '' | engine_recipe; '' is any.
-- parameter limit: UInt64 = 10000 | At most so many instances, the latest first.
-- column service_instance_id [] | The engine instance: one run of one process.
-- column service_name [] | OpenTelemetry service.
-- column host_name [] | Host.
-- column engine_name [] | Engine.
-- column engine_version [] | Version of the engine.
-- column engine_package [] | Build under test.
-- column engine_recipe [] | Configuration under test.
-- column engine_tensor_parallel [GPUs] | Tensor parallelism.
-- column gpu_ids [] | Its GPUs.
-- column engine_attributes [] | Everything else it says of itself.
-- column scheduler_cost_model [] | Cost model of its latest execution that names one.
-- column graphs [] | Graphs it executed.
-- column has_speculative [] | It has a speculative graph to choose from.
-- column first_seen [time] | First submission, by the engine's clock.
-- column last_seen [time] | Last observed completion, by the engine's clock.
-- column last_received_at [time] | Last arrival, by the collector's clock.
-- column executions [executions] | Stored executions.
-- column cells [cells] | Cells they belong to.
-- column arms [] | Arms of comparison it took part in.
-- table: host_name, engine_package, service_instance_id, engine_recipe, has_speculative, last_seen, executions, cells, graphs, scheduler_cost_model
-- example: tachograph query engines --format json
SELECT
    service_instance_id,
    anyIf(e.service_name, is_asked) AS service_name,
    anyIf(e.host_name, is_asked) AS host_name,
    anyIf(e.engine_name, is_asked) AS engine_name,
    anyIf(e.engine_version, is_asked) AS engine_version,
    anyIf(e.engine_package, is_asked) AS engine_package,
    anyIf(e.engine_recipe, is_asked) AS engine_recipe,
    anyIf(e.engine_tensor_parallel, is_asked) AS engine_tensor_parallel,
    anyIf(e.gpu_ids, is_asked) AS gpu_ids,
    anyIf(e.engine_attributes, is_asked) AS engine_attributes,
    maxIf(cost_model_latest, is_asked).2 AS scheduler_cost_model,
    arraySort(groupUniqArrayArrayIf(e.graphs, is_asked)) AS graphs,
    -- Plain decode promises one token a lane. A graph that promises more, and was never executed, can only be speculative.
    toBool(max(is_speculative) OR notEmpty(arrayExcept(groupUniqArrayArrayIf(promising_candidates, NOT is_speculative), groupUniqArrayArrayIf(plain_graphs, NOT is_speculative)))) AS has_speculative,
    minIf(first_started_at, is_asked) AS first_seen,
    maxIf(last_ended_at, is_asked) AS last_seen,
    maxIf(e.last_received_at, is_asked) AS last_received_at,
    sumIf(e.executions, is_asked) AS executions,
    sumIf(cells_within, is_asked) + uniqExactIf(cell, cell != '' AND is_asked) AS cells,
    arraySort(groupUniqArrayArrayIf(e.arms, is_asked)) AS arms
FROM
(
    SELECT
        service_instance_id, host_name, engine_package, engine_recipe,
        service_name, engine_name, engine_version, engine_tensor_parallel, gpu_ids, engine_attributes, cost_model_latest,
        graphs, notEmpty(speculative_graphs) AS is_speculative, graphs AS plain_graphs, promising_candidates,
        first_started_at, last_started_at, last_ended_at, last_received_at, executions,
        0 AS cells_within,
        cell,
        if(cell_arm = '', [], [toString(cell_arm)]) AS arms,
        -- A row with a judgement alone adds nothing.
        executions > 0 AND window_started_at > subtractSeconds(since, 30)
            AND ({arm:String} = '' OR cell_arm = {arm:String})
            AND ({cell:String} = '' OR cell = {cell:String}) AS is_asked
    FROM cell_windows
    WHERE window_started_at > subtractSeconds(since, {history_s:UInt32} + 30)
        AND window_started_at < {to:DateTime64(9, 'UTC')}
        AND toStartOfInterval(window_started_at, INTERVAL 30 MINUTE) IN (SELECT arrayJoin(unsettled))
    UNION ALL
    SELECT
        service_instance_id, host_name, engine_package, engine_recipe,
        service_name, engine_name, engine_version, engine_tensor_parallel, gpu_ids, engine_attributes, cost_model_latest,
        graphs, is_speculative, plain_graphs, promising_candidates,
        first_started_at, last_started_at, last_ended_at, last_received_at, executions,
        cells_within, reaching_cell, arms, true
    FROM engine_half_hours FINAL
    WHERE half_hour_started_at >= since
        AND half_hour_started_at < {to:DateTime64(9, 'UTC')}
        AND half_hour_started_at NOT IN (SELECT arrayJoin(unsettled))
) AS e
WHERE ({service_instance_id:String} = '' OR service_instance_id = {service_instance_id:String})
    AND ({host:String} = '' OR e.host_name = {host:String})
    AND ({package:String} = '' OR e.engine_package = {package:String})
    AND ({recipe:String} = '' OR e.engine_recipe = {recipe:String})
GROUP BY service_instance_id
HAVING maxIf(last_started_at, is_asked) >= since AND first_seen < {to:DateTime64(9, 'UTC')} AND executions > 0
ORDER BY last_seen DESC, service_instance_id
LIMIT {limit:UInt64}
