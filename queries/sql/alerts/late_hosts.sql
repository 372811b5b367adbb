-- question: Which engines' devices wait for the host before pipelined rounds, round after round?
-- uses: idle_before
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
    any(i.host_name) AS host_name,
    any(i.engine_package) AS engine_package,
    late_rounds / executions AS late_rounds_fraction,
    host_late_s / nullIf((max(toUnixTimestamp64Nano(started_at) + duration_ns) - min(toUnixTimestamp64Nano(started_at))) / 1e9, 0) AS host_late_fraction,
    sumIf(idle_ns, is_gap AND idle_cause = 'host_late') / 1e9 AS host_late_s,
    countIf(is_gap AND idle_cause = 'host_late') AS late_rounds,
    count() AS executions
FROM idle_before AS i
GROUP BY service_instance_id
ORDER BY late_rounds_fraction DESC, service_instance_id
LIMIT {limit:UInt64}
