-- row: The 30 s windows to read for lost executions: those with a gap inside and those on either side of one, each with its place among the instance's windows.
-- uses: asked
-- parameter service_instance_id: String = '' | One engine instance; '' is any.
-- parameter host: String = '' | host_name; '' is any.
-- parameter package: String = '' | engine_package; '' is any.
-- parameter recipe: String = '' | engine_recipe; '' is any.
-- parameter arm: String = '' | cell_arm; '' is any.
-- parameter cell: String = '' | One cell: the benchmark's cell_id, or the start of a 30 s window in Unix seconds; '' is any.
SELECT groupArray((toString(service_instance_id), window_started_at, place))
FROM
(
    SELECT
        service_instance_id,
        window_started_at,
        row_number() OVER windows AS place,
        min(sequence_first) AS first_one,
        max(sequence_last) AS last_one,
        last_one - first_one + 1 > groupBitmapMerge(sequences) AS has_gap,
        lagInFrame(last_one, 1, first_one - 1) OVER windows AS last_before,
        leadInFrame(first_one, 1, last_one + 1) OVER windows AS first_after
    FROM cell_windows
    WHERE window_started_at > subtractSeconds(asked.since, 30)
        AND window_started_at < asked.until
        AND ({service_instance_id:String} = '' OR service_instance_id = {service_instance_id:String})
        AND ({host:String} = '' OR host_name = {host:String})
        AND ({package:String} = '' OR engine_package = {package:String})
        AND ({recipe:String} = '' OR engine_recipe = {recipe:String})
        AND ({arm:String} = '' OR cell_arm = {arm:String})
        AND ({cell:String} = '' OR cell = {cell:String})
    GROUP BY service_instance_id, window_started_at
    WINDOW windows AS (PARTITION BY service_instance_id ORDER BY window_started_at ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)
)
WHERE has_gap OR first_one > last_before + 1 OR first_after > last_one + 1
