-- row: The cells with executions that their latest judgement does not count; and, once more, those judged before everything could arrive by which their graphs' costs are measured.
-- uses: cells_told
-- parameter history_s: UInt32 = 600 | How long before the time asked for to look for what an engine can execute, what a graph costs and since when it decodes plainly, in s. A cell that began before the time asked for counts from its start, at most from there.
SELECT groupArray((toString(service_instance_id), cell))
FROM cells_told
WHERE judged_executions != cell_executions
    OR (judged_at < addSeconds(cell_received_at, {history_s:UInt32}) AND addSeconds(cell_received_at, {history_s:UInt32}) < now64(3, 'UTC'))
