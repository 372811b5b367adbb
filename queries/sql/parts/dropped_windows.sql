-- part: The 30 s windows of cells whose executions sampling dropped, and how many it dropped there at least: of a cell that reaches over several windows, how many it dropped of each is not known.
-- parameter from: DateTime64(9, 'UTC') = -1d | From the 30 s window of this instant on.
-- parameter to: DateTime64(9, 'UTC') = 2200-01-01 00:00:00 | Before the 30 s window of this instant.
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
        -- The row that says so holds all of the cell's day. A cell lasts an hour at most.
        WHERE dropped_at > toDateTime64(0, 3, 'UTC')
            AND addSeconds(last_started_at, 3630) >= {from:DateTime64(9, 'UTC')}
            AND subtractSeconds(first_started_at, 3630) < {to:DateTime64(9, 'UTC')}
            AND ({service_instance_id:String} = '' OR service_instance_id = {service_instance_id:String})
        GROUP BY service_instance_id, cell, received_on
    )
    GROUP BY service_instance_id, cell
)
