-- row: Engines that executed nothing as speculative near the time asked for, but had a candidate that promised more than one token a lane and was never executed: it can only be speculative.
-- uses: since
-- parameter to: DateTime64(9, 'UTC') = 2200-01-01 00:00:00 | Executions submitted before this instant.
-- parameter history_s: UInt32 = 600 | How long before the time asked for to look for what an engine can execute, what a graph costs and since when it decodes plainly, in s. A cell that began before the time asked for counts from its start, at most from there.
SELECT groupArray(service_instance_id)
FROM
(
    SELECT toString(service_instance_id) AS service_instance_id
    FROM cell_windows
    WHERE window_started_at > subtractSeconds(since, {history_s:UInt32} + 30)
        AND window_started_at < {to:DateTime64(9, 'UTC')}
        -- All windows of an engine without a speculative round pass, and of others few: the lists of those alone are read.
        AND empty(speculative_graphs)
    GROUP BY service_instance_id
    HAVING notEmpty(arrayExcept(groupUniqArrayArray(promising_candidates), groupUniqArrayArray(graphs)))
)
