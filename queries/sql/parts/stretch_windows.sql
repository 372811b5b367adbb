-- row: The 30 s windows to read for the stretches of plain decode of stuck cells: their own and those around them, up to the nearest that have an ordinary speculative round.
-- uses: stuck_cells, cells_nearby
SELECT groupUniqArray((toString(service_instance_id), window_started_at))
FROM
(
    SELECT
        *,
        groupUniqArrayIf(speculative_before, is_stuck) OVER (PARTITION BY service_instance_id) AS from_before,
        groupUniqArrayIf(speculative_until, is_stuck) OVER (PARTITION BY service_instance_id) AS from_until
    FROM
    (
        SELECT
            service_instance_id,
            window_started_at,
            max((service_instance_id, cell) IN (SELECT arrayJoin(stuck_cells))) AS is_stuck,
            sumIf(ordinary_executions, graph_kind = 'speculative') > 0 AS has_speculative_round,
            sum(has_speculative_round) OVER (PARTITION BY service_instance_id ORDER BY window_started_at) AS speculative_until,
            speculative_until - has_speculative_round AS speculative_before
        FROM cells_nearby
        GROUP BY service_instance_id, window_started_at
    )
)
WHERE is_stuck OR has(from_before, speculative_until) OR has(from_until, speculative_before)
