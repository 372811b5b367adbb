-- part: The submission numbers of the time asked for, by the rollup of 30 s.
-- uses: asked
-- parameter service_instance_id: String = '' | One engine instance; '' is any.
-- parameter host: String = '' | host_name; '' is any.
-- parameter package: String = '' | engine_package; '' is any.
-- parameter recipe: String = '' | engine_recipe; '' is any.
-- parameter arm: String = '' | cell_arm; '' is any.
-- parameter cell: String = '' | One cell: the benchmark's cell_id, or the start of a 30 s window in Unix seconds; '' is any.
SELECT service_instance_id, window_started_at, executions, sequence_first, sequence_last, sequence_sum, sequence_squares_sum, sequences
FROM cell_windows
WHERE window_started_at > subtractSeconds(asked.since, 30)
    AND window_started_at < asked.until
    AND ({service_instance_id:String} = '' OR service_instance_id = {service_instance_id:String})
    AND ({host:String} = '' OR host_name = {host:String})
    AND ({package:String} = '' OR engine_package = {package:String})
    AND ({recipe:String} = '' OR engine_recipe = {recipe:String})
    AND ({arm:String} = '' OR cell_arm = {arm:String})
    AND ({cell:String} = '' OR cell = {cell:String})
