-- part: The executions asked for, each with its cell.
-- uses: asked
-- parameter service_instance_id: String = '' | One engine instance; '' is any.
-- parameter host: String = '' | host_name; '' is any.
-- parameter package: String = '' | engine_package; '' is any.
-- parameter recipe: String = '' | engine_recipe; '' is any.
-- parameter arm: String = '' | cell_arm; '' is any.
-- parameter cell: String = '' | One cell: the benchmark's cell_id, or the start of a 30 s window in Unix seconds; '' is any.
SELECT
    *, cell, duration_ns, graph_gpu_time_ns, graph_wall_time_ns, graph_gpu_start_offset_ns, batch_tokens_accepted,
    scheduler_estimate_ns, scheduler_estimate_gpu_ns, scheduler_expected_tokens
FROM graph_executions
WHERE started_at >= asked.since
    AND started_at < asked.until
    AND (empty(asked.engines) OR service_instance_id IN (SELECT arrayJoin(asked.engines)))
    AND ({service_instance_id:String} = '' OR service_instance_id = {service_instance_id:String})
    AND ({host:String} = '' OR host_name = {host:String})
    AND ({package:String} = '' OR engine_package = {package:String})
    AND ({recipe:String} = '' OR engine_recipe = {recipe:String})
    AND ({arm:String} = '' OR cell_arm = {arm:String})
    AND ({cell:String} = '' OR cell = {cell:String})
