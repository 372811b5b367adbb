-- row: The cells stuck in plain decode.
-- uses: cell_figures
SELECT groupArray((toString(service_instance_id), cell))
FROM cell_figures
WHERE stuck
