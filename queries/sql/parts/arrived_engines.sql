-- part: Engines heard of by the instant asked for: when last, and with what.
-- uses: arrived
SELECT
    service_instance_id,
    any(host_name) AS host_name,
    max(a.service_name) AS service_name,
    any(engine_package) AS engine_package,
    max(a.gpu_ids) AS gpu_ids,
    min(a.first_started_at) AS first_started_at,
    max(a.last_ended_at) AS last_ended_at,
    min(a.last_received_at) AS first_received_at,
    max(a.last_received_at) AS last_received_at,
    sum(a.executions) AS executions,
    max(window_started_at) AS newest_window_at
FROM arrived AS a
GROUP BY service_instance_id
