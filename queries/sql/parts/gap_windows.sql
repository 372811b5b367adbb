-- row: The 30 s windows to read for lost executions: those with a gap inside and those on either side of one, each with its place among the instance's windows.
-- uses: windows_asked, uneven_engines
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
    FROM windows_asked
    WHERE service_instance_id IN (SELECT service_instance_id FROM uneven_engines)
    GROUP BY service_instance_id, window_started_at
    WINDOW windows AS (PARTITION BY service_instance_id ORDER BY window_started_at ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)
)
WHERE has_gap OR first_one > last_before + 1 OR first_after > last_one + 1
