-- part: Every execution, with how long the device had run nothing before it, and why. The device is busy while any execution runs on it (the union over streams). Where the device start was not recorded, the gap is wall time - GPU time.
-- uses: selected
-- parameter gap_above_ns: UInt64 = 10000 | Only gaps longer than this, in ns: clocks round.
SELECT
    *,
    multiIf(
        graph_after_idle, 'after_idle',
        -- What ran in between was not recorded: nobody can tell whether the device was idle.
        graph_sequence > sequence_before + 1, 'unknown',
        feedback_before, 'feedback',
        graph_queue_depth = 0, 'host_late',
        'unknown'
    ) AS idle_cause,
    busy_until_ns > 0 AND idle_ns > toInt64({gap_above_ns:UInt64}) AS is_gap
FROM
(
    SELECT
        service_instance_id, cell, host_name, engine_package, started_at, graph_sequence, graph_name, graph_purpose,
        graph_queue_depth, graph_after_idle, duration_ns,
        last_value(graph_completion_feedback) OVER before AS feedback_before,
        max(graph_sequence) OVER before AS sequence_before,
        max(device_ended_ns) OVER before AS busy_until_ns,
        if(graph_gpu_start_offset_ns IS NULL, graph_wall_time_ns - graph_gpu_time_ns, device_started_ns - busy_until_ns) AS idle_ns
    FROM
    (
        SELECT
            service_instance_id, cell, host_name, engine_package, started_at, duration_ns, graph_sequence, graph_name, graph_purpose,
            graph_queue_depth, graph_after_idle, graph_completion_feedback, graph_gpu_start_offset_ns, graph_gpu_time_ns, graph_wall_time_ns,
            toUnixTimestamp64Nano(started_at) + ifNull(graph_gpu_start_offset_ns, duration_ns - graph_gpu_time_ns) AS device_started_ns,
            device_started_ns + graph_gpu_time_ns AS device_ended_ns
        FROM selected
    )
    WINDOW before AS (PARTITION BY service_instance_id ORDER BY device_started_ns, graph_sequence ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
)
