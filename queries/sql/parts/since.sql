-- row: The time asked for begins here.
-- given from: {from:DateTime64(9, 'UTC')}
-- given service_instance_id, cell, not from, host, package, recipe, arm: (SELECT min(first_started_at) FROM cell_windows WHERE service_instance_id = {service_instance_id:String} AND cell = {cell:String} AND first_started_at < {to:DateTime64(9, 'UTC')})
-- parameter from: DateTime64(9, 'UTC') = 1970-01-01 00:00:00 | Executions submitted at or after this instant. Left out: all of the cell or arm where one is named, else last_s.
-- parameter to: DateTime64(9, 'UTC') = 2200-01-01 00:00:00 | Executions submitted before this instant.
-- parameter last_s: UInt32 = 1800 | Without `from`, `cell` and `arm`: look at so many seconds up to the newest execution that the other parameters leave, by its engine's clock or its arrival, whichever is earlier; 0 is everything.
-- parameter service_instance_id: String = '' | One engine instance; '' is any.
-- parameter host: String = '' | host_name; '' is any.
-- parameter package: String = '' | engine_package; '' is any.
-- parameter recipe: String = '' | engine_recipe; '' is any.
-- parameter arm: String = '' | cell_arm; '' is any.
-- parameter cell: String = '' | One cell: the benchmark's cell_id, or the start of a 30 s window in Unix seconds; '' is any.
SELECT multiIf(
    {from:DateTime64(9, 'UTC')} > toDateTime64(0, 9, 'UTC'), {from:DateTime64(9, 'UTC')},
    {last_s:UInt32} = 0 OR {cell:String} != '' OR {arm:String} != '', min(first_started_at),
    subtractSeconds(max(least(newest_at, {to:DateTime64(9, 'UTC')})), {last_s:UInt32})
)
FROM cell_windows
-- With `from`, nothing is read.
WHERE {from:DateTime64(9, 'UTC')} <= toDateTime64(0, 9, 'UTC')
    AND ({service_instance_id:String} = '' OR service_instance_id = {service_instance_id:String})
    AND ({host:String} = '' OR host_name = {host:String})
    AND ({package:String} = '' OR engine_package = {package:String})
    AND ({recipe:String} = '' OR engine_recipe = {recipe:String})
    AND ({arm:String} = '' OR cell_arm = {arm:String})
    AND ({cell:String} = '' OR cell = {cell:String})
    AND first_started_at < {to:DateTime64(9, 'UTC')}
