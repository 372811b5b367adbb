-- row: The time asked for begins here, where neither cell nor arm can be asked for.
-- given from: {from:DateTime64(9, 'UTC')}
-- parameter from: DateTime64(9, 'UTC') = 1970-01-01 00:00:00 | Executions submitted at or after this instant. Left out: last_s.
-- parameter to: DateTime64(9, 'UTC') = 2200-01-01 00:00:00 | Executions submitted before this instant.
-- parameter last_s: UInt32 = 1800 | Without `from`: look at so many seconds up to the newest execution that the other parameters leave, by its engine's clock or its arrival, whichever is earlier; 0 is everything.
-- parameter service_instance_id: String = '' | One engine instance; '' is any.
-- parameter host: String = '' | host_name; '' is any.
-- parameter package: String = '' | engine_package; '' is any.
-- parameter recipe: String = '' | engine_recipe; '' is any.
SELECT multiIf(
    {from:DateTime64(9, 'UTC')} > toDateTime64(0, 9, 'UTC'), {from:DateTime64(9, 'UTC')},
    {last_s:UInt32} = 0, min(first_started_at),
    subtractSeconds(max(least(newest_at, {to:DateTime64(9, 'UTC')})), {last_s:UInt32})
)
FROM cell_windows
-- With `from`, nothing is read.
WHERE {from:DateTime64(9, 'UTC')} <= toDateTime64(0, 9, 'UTC')
    AND ({service_instance_id:String} = '' OR service_instance_id = {service_instance_id:String})
    AND ({host:String} = '' OR host_name = {host:String})
    AND ({package:String} = '' OR engine_package = {package:String})
    AND ({recipe:String} = '' OR engine_recipe = {recipe:String})
    AND first_started_at < {to:DateTime64(9, 'UTC')}
