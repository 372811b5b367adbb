-- question: Which engines' devices wait for the host before pipelined rounds, round after round?
-- uses: selected, idle_gaps
-- parameter limit: UInt64 = 10000 | At most so many engines, the most delayed first.
-- column service_instance_id [] | The engine instance.
-- column host_name [] | Host.
-- column engine_package [] | Build under test.
-- column late_rounds_fraction [fraction] | Share of its executions before which the device idled because the host came late (`host_late` in gpu_idle), for longer than gap_above_ns.
-- column host_late_fraction [fraction] | Share of its elapsed time in which the device idled so.
-- column host_late_s [s] | That time.
-- column late_rounds [executions] | Those executions.
-- column executions [executions] | Its stored executions in the time asked for.
-- table: host_name, service_instance_id, late_rounds_fraction, host_late_fraction, host_late_s, late_rounds, executions
-- example: tachograph query late_hosts --param from=-2m --param gap_above_ns=1000000
SELECT
    service_instance_id,
    host_name,
    engine_package,
    late_rounds / e.executions AS late_rounds_fraction,
    host_late_s / nullIf(elapsed_s, 0) AS host_late_fraction,
    l.idle_ns / 1e9 AS host_late_s,
    l.late AS late_rounds,
    e.executions AS executions
FROM
(
    SELECT
        service_instance_id,
        any(host_name) AS host_name,
        any(engine_package) AS engine_package,
        count() AS executions,
        (max(toUnixTimestamp64Nano(started_at) + duration_ns) - min(toUnixTimestamp64Nano(started_at))) / 1e9 AS elapsed_s
    FROM selected
    GROUP BY service_instance_id
) AS e
LEFT JOIN
(
    SELECT service_instance_id, count() AS late, sum(g.idle_ns) AS idle_ns
    FROM idle_gaps AS g
    WHERE idle_cause = 'host_late'
    GROUP BY service_instance_id
) AS l ON l.service_instance_id = e.service_instance_id
ORDER BY late_rounds_fraction DESC, service_instance_id
LIMIT {limit:UInt64}
