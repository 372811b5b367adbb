-- row: Engines that executed a graph as speculative near the time asked for.
-- uses: since
-- parameter to: DateTime64(9, 'UTC') = 2200-01-01 00:00:00 | Executions submitted before this instant.
-- parameter history_s: UInt32 = 600 | How long before the time asked for to look for what an engine can execute, what a graph costs and since when it decodes plainly, in s. A cell that began before the time asked for counts from its start, at most from there.
SELECT groupUniqArray(toString(service_instance_id))
FROM cell_windows
WHERE window_started_at > subtractSeconds(since, {history_s:UInt32} + 30)
    AND window_started_at < {to:DateTime64(9, 'UTC')}
    AND notEmpty(speculative_graphs)
