-- part: The rollup by 30 s of the engines asked for, from history_s before the time asked for on: not only of the cell asked for.
-- uses: since
-- parameter to: DateTime64(9, 'UTC') = 2200-01-01 00:00:00 | Executions submitted before this instant.
-- parameter history_s: UInt32 = 600 | How long before the time asked for to look for what an engine can execute, what a graph costs and since when it decodes plainly, in s. A cell that began before the time asked for counts from its start, at most from there.
-- parameter service_instance_id: String = '' | One engine instance; '' is any.
-- parameter host: String = '' | host_name; '' is any.
-- parameter package: String = '' | engine_package; '' is any.
-- parameter recipe: String = '' | engine_recipe; '' is any.
SELECT *
FROM cell_windows
WHERE window_started_at > subtractSeconds(since, {history_s:UInt32} + 30)
    AND window_started_at < {to:DateTime64(9, 'UTC')}
    AND ({service_instance_id:String} = '' OR service_instance_id = {service_instance_id:String})
    AND ({host:String} = '' OR host_name = {host:String})
    AND ({package:String} = '' OR engine_package = {package:String})
    AND ({recipe:String} = '' OR engine_recipe = {recipe:String})
