-- question: Which engine instances are there, and when was each last heard of?
-- uses: windows_nearby, speculative_engines, promising_engines
-- parameter arm: String = '' | cell_arm; '' is any.
-- parameter cell: String = '' | One cell: the benchmark's cell_id, or the start of a 30 s window in Unix seconds; '' is any.
-- parameter to: DateTime64(9, 'UTC') = 2200-01-01 00:00:00 | Executions submitted before this instant.
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
    e.service_instance_id AS service_instance_id,
    service_name, host_name, engine_name, engine_version, engine_package, engine_recipe, engine_tensor_parallel,
    gpu_ids, engine_attributes, scheduler_cost_model, graphs,
    toBool(has(speculative_engines, toString(service_instance_id)) OR has(promising_engines, toString(service_instance_id))) AS has_speculative,
    first_seen, last_seen, last_received_at, executions, cells, arms
FROM
(
    SELECT
        service_instance_id,
        anyIf(c.service_name, c.executions > 0) AS service_name,
        anyIf(c.host_name, c.executions > 0) AS host_name,
        anyIf(c.engine_name, c.executions > 0) AS engine_name,
        anyIf(c.engine_version, c.executions > 0) AS engine_version,
        anyIf(c.engine_package, c.executions > 0) AS engine_package,
        anyIf(c.engine_recipe, c.executions > 0) AS engine_recipe,
        anyIf(c.engine_tensor_parallel, c.executions > 0) AS engine_tensor_parallel,
        anyIf(c.gpu_ids, c.executions > 0) AS gpu_ids,
        anyIf(c.engine_attributes, c.executions > 0) AS engine_attributes,
        max(cost_model_latest).2 AS scheduler_cost_model,
        arraySort(groupUniqArrayArray(c.graphs)) AS graphs,
        min(first_started_at) AS first_seen,
        max(last_ended_at) AS last_seen,
        max(c.last_received_at) AS last_received_at,
        sum(c.executions) AS executions,
        uniqExact(cell) AS cells,
        arraySort(groupUniqArrayIf(cell_arm, cell_arm != '')) AS arms
    FROM windows_nearby AS c
    WHERE window_started_at > subtractSeconds(since, 30)
        AND ({arm:String} = '' OR cell_arm = {arm:String})
        AND ({cell:String} = '' OR cell = {cell:String})
    GROUP BY service_instance_id
    HAVING max(last_started_at) >= since AND first_seen < {to:DateTime64(9, 'UTC')}
) AS e
ORDER BY last_seen DESC, service_instance_id
LIMIT {limit:UInt64}
