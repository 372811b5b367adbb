-- row: Of those windows, the ones where a number between the first and the last was never stored.
-- uses: windows_asked, uneven_windows
SELECT groupArray((toString(service_instance_id), window_started_at))
FROM
(
    SELECT service_instance_id, window_started_at
    FROM windows_asked
    WHERE (service_instance_id, window_started_at) IN (SELECT arrayJoin(uneven_windows))
    GROUP BY service_instance_id, window_started_at
    HAVING max(sequence_last) - min(sequence_first) + 1 > groupBitmapMerge(sequences)
)
