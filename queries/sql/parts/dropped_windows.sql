-- part: The 30 s windows of cells whose executions sampling dropped, and how many it dropped there at least: of a cell that reaches over several windows, how many it dropped of each is not known.
-- parameter service_instance_id: String = '' | One engine instance; '' is any.
SELECT
    service_instance_id,
    toDateTime(arrayJoin(range(intDiv(first_ns, 30000000000), intDiv(last_ns, 30000000000) + 1)) * 30, 'UTC') AS dropped_window,
    if(intDiv(first_ns, 30000000000) = intDiv(last_ns, 30000000000), toInt64(counted), 0) AS dropped
FROM
(
    SELECT
        service_instance_id, cell,
        -- Cells of clocks beyond reason, and those that span more than an hour, are never dropped.
        toUnixTimestamp64Nano(min(day_first_started_at)) AS first_ns, toUnixTimestamp64Nano(max(day_last_started_at)) AS last_ns,
        sum(day_executions) AS counted
    FROM
    (
        SELECT
            service_instance_id, cell, received_on,
            min(c.first_started_at) AS day_first_started_at, max(c.last_started_at) AS day_last_started_at,
            max(c.executions) AS day_executions
        FROM cell_samples AS c
        WHERE true
            AND ({service_instance_id:String} = '' OR service_instance_id = {service_instance_id:String})
        GROUP BY service_instance_id, cell, received_on
        HAVING max(c.dropped_at) > toDateTime64(0, 3, 'UTC')
    )
    GROUP BY service_instance_id, cell
)
