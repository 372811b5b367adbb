-- row: Of those engines, the 30 s windows whose numbers do not add up so: there alone it has to be looked for numbers that are missing.
-- uses: windows_asked, uneven_engines
SELECT groupArray((toString(service_instance_id), window_started_at))
FROM
(
    SELECT
        service_instance_id, window_started_at,
        toUInt256(sum(executions)) AS n,
        toUInt64(min(sequence_first)) AS first_one,
        -- Counted from the first one on, modulo 2^64.
        sum(sequence_sum) - toUInt64(n) * first_one AS numbers,
        sum(sequence_squares_sum) - 2 * first_one * sum(sequence_sum) + toUInt64(n) * first_one * first_one AS squares
    FROM windows_asked
    WHERE service_instance_id IN (SELECT arrayJoin(uneven_engines))
    GROUP BY service_instance_id, window_started_at
    HAVING toUInt64(max(sequence_last)) - first_one + 1 != toUInt64(n)
        OR numbers != toUInt64(intDiv(n * (n - 1), 2))
        OR squares != toUInt64(intDiv(n * (n - 1) * (2 * n - 1), 6))
)
