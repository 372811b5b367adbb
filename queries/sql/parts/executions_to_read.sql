-- part: The executions of the cells to be judged and of those where their graphs' costs are measured.
-- uses: plan
-- parameter service_instance_id: String = '' | One engine instance; '' is any.
-- parameter host: String = '' | host_name; '' is any.
-- parameter package: String = '' | engine_package; '' is any.
-- parameter recipe: String = '' | engine_recipe; '' is any.
SELECT
    *, cell, duration_ns, graph_gpu_time_ns, graph_wall_time_ns, graph_gpu_start_offset_ns, batch_tokens_accepted,
    scheduler_estimate_ns, scheduler_estimate_gpu_ns, scheduler_expected_tokens,
    -- Batches within a tenth of each other, mostly.
    toUInt8(round(8 * log2(1 + greatest(ifNull(batch_lanes, 0), 0)))) AS like_lanes
FROM graph_executions
WHERE (service_instance_id, toStartOfInterval(started_at, INTERVAL 30 SECOND), cell) IN (SELECT arrayJoin(plan.windows))
    AND ({service_instance_id:String} = '' OR service_instance_id = {service_instance_id:String})
    AND ({host:String} = '' OR host_name = {host:String})
    AND ({package:String} = '' OR engine_package = {package:String})
    AND ({recipe:String} = '' OR engine_recipe = {recipe:String})
