-- part: Every stretch in which the device of an instance ran nothing, with the execution that ended it and why.
-- uses: idle_before
SELECT *
FROM idle_before
WHERE is_gap
