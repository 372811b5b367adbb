-- part: Engines whose submission numbers do not add up, in the time asked for, to those between their first and their last: of all others nothing is missing. Sums and sums of squares see every one or two lost, whatever else was stored twice; three lost beside three repeated can escape them, at distances that happen to agree.
-- uses: windows_asked
SELECT service_instance_id
FROM
(
    SELECT
        service_instance_id,
        toUInt256(sum(executions)) AS n,
        toUInt64(min(sequence_first)) AS first_one,
        toUInt64(max(sequence_last)) AS last_one,
        -- Counted from the first one on, modulo 2^64.
        sum(sequence_sum) - toUInt64(n) * first_one AS numbers,
        sum(sequence_squares_sum) - 2 * first_one * sum(sequence_sum) + toUInt64(n) * first_one * first_one AS squares
    FROM windows_asked
    GROUP BY service_instance_id
)
WHERE last_one - first_one + 1 != toUInt64(n)
    OR numbers != toUInt64(intDiv(n * (n - 1), 2))
    OR squares != toUInt64(intDiv(n * (n - 1) * (2 * n - 1), 6))
