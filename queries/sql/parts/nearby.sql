-- part: The executions asked for and those of the same engines in the ten minutes before (history_s), whatever their cell.
-- parameter from: DateTime64(9, 'UTC') = 1970-01-01 00:00:00 | Executions submitted at or after this instant. A cell cut by it is judged by the part inside.
-- parameter to: DateTime64(9, 'UTC') = 2200-01-01 00:00:00 | Executions submitted before this instant.
-- parameter service_instance_id: String = '' | One engine instance; '' is any.
-- parameter host: String = '' | host_name; '' is any.
-- parameter package: String = '' | engine_package; '' is any.
-- parameter recipe: String = '' | engine_recipe; '' is any.
-- parameter history_s: UInt32 = 600 | How long before `from` to look for what an engine can execute, what a graph costs and since when it decodes plainly, in s.
SELECT *, cell
FROM graph_executions
WHERE started_at >= addSeconds(greatest({from:DateTime64(9, 'UTC')}, toDateTime64('1990-01-01 00:00:00', 9, 'UTC')), -toInt64({history_s:UInt32}))
    AND started_at < {to:DateTime64(9, 'UTC')}
    AND ({service_instance_id:String} = '' OR service_instance_id = {service_instance_id:String})
    AND ({host:String} = '' OR host_name = {host:String})
    AND ({package:String} = '' OR engine_package = {package:String})
    AND ({recipe:String} = '' OR engine_recipe = {recipe:String})
