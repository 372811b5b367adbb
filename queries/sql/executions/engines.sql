-- question: Which engine instances are there, and when was each last heard of?
-- uses: windows_nearby, engine_graphs
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
    toBool(g.has_speculative) AS has_speculative,
    first_seen, last_seen, last_received_at, executions, cells, arms
FROM
(
    SELECT
        service_instance_id,
        max(c.service_name) AS service_name,
        max(c.host_name) AS host_name,
        max(c.engine_name) AS engine_name,
        max(c.engine_version) AS engine_version,
        max(c.engine_package) AS engine_package,
        max(c.engine_recipe) AS engine_recipe,
        max(c.engine_tensor_parallel) AS engine_tensor_parallel,
        max(c.gpu_ids) AS gpu_ids,
        max(c.engine_attributes) AS engine_attributes,
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
LEFT JOIN engine_graphs AS g ON g.service_instance_id = e.service_instance_id
ORDER BY last_seen DESC, service_instance_id
LIMIT {limit:UInt64}
