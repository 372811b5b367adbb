-- row: The cells stuck in plain decode.
-- uses: cells_told
SELECT groupArray((toString(service_instance_id), cell))
FROM cells_told
WHERE is_stuck
