-- question: Which cells did sampling examine, which of them are kept as rollups only, and why are the others kept whole?
-- parameter service_instance_id: String = '' | One engine instance; '' is any.
-- parameter cell: String = '' | One cell: the benchmark's cell_id, or the start of a 30 s window in Unix seconds; '' is any.
-- parameter days: UInt16 = 2 | Cells that arrived within so many days.
-- parameter limit: UInt64 = 10000 | At most so many cells, the latest first.
-- column service_instance_id [] | The engine instance.
-- column cell [] | The cell.
-- column started_at [time] | Its first submission.
-- column executions [executions] | Executions it had when it was examined.
-- column fate [] | `dropped`: kept as rollups only. `kept`: whole, for its own sake. `waiting`: healthy, and either near a cell that is not, or not dropped yet.
-- column reason [] | Why it is kept: what speaks against dropping it, `share` (of healthy cells) or `marked` (by a benchmark).
-- column examined_at [time] | When it was examined, by the store's clock.
-- column dropped_at [time] | When its executions were dropped; empty where they were not.
-- table: service_instance_id, cell, fate, reason, executions, started_at, dropped_at
-- example: tachograph query sampled_cells --param days=7
SELECT
    service_instance_id,
    cell,
    min(first_started_at) AS started_at,
    sum(day_executions) AS executions,
    multiIf(max(day_dropped_at) > toDateTime64(0, 3, 'UTC'), 'dropped', reason != '', 'kept', 'waiting') AS fate,
    max(day_reason) AS reason,
    max(day_examined_at) AS examined_at,
    if(fate = 'dropped', max(day_dropped_at), NULL) AS dropped_at
FROM
(
    SELECT
        service_instance_id, cell, received_on,
        min(s.first_started_at) AS first_started_at,
        max(s.executions) AS day_executions,
        max(s.reason) AS day_reason,
        max(s.examined_at) AS day_examined_at,
        max(s.dropped_at) AS day_dropped_at
    FROM cell_samples AS s
    WHERE received_on > subtractDays(toDate(now('UTC')), {days:UInt16})
        AND ({service_instance_id:String} = '' OR service_instance_id = {service_instance_id:String})
        AND ({cell:String} = '' OR cell = {cell:String})
    GROUP BY service_instance_id, cell, received_on
)
GROUP BY service_instance_id, cell
ORDER BY started_at DESC, service_instance_id, cell
LIMIT {limit:UInt64}
