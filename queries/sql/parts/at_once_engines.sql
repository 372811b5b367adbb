-- part: Engines at least half of whose submissions fall on the very instant at which an execution was observed: they may take one timestamp for both. As `queries.known_by_then` has it.
-- uses: selected
SELECT service_instance_id
FROM
(
    SELECT
        service_instance_id,
        graph_after_idle,
        count() OVER before AS submissions_before,
        has(groupArrayIf(addNanoseconds(started_at, duration_ns), duration_ns > 0) OVER before, started_at) AS is_at_once
    FROM selected
    WINDOW before AS (PARTITION BY service_instance_id ORDER BY started_at, graph_sequence ROWS BETWEEN 8 PRECEDING AND 1 PRECEDING)
)
WHERE submissions_before > 0 AND NOT graph_after_idle
GROUP BY service_instance_id
HAVING countIf(is_at_once) >= 0.5 * count()
