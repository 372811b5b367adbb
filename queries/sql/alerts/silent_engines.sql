-- question: Which engines that were heard of lately are silent, and since when?
-- uses: arrived_engines
-- parameter at: DateTime64(9, 'UTC') = now | The instant to judge by, on the collector's clock: what arrived later is not known yet.
-- parameter behind_s: Float64 = 0 | How long the oldest request that the collector has not stored yet has waited, in s: it may be theirs.
-- parameter limit: UInt64 = 10000 | At most so many engines, the longest silent first.
-- column service_instance_id [] | The engine instance.
-- column host_name [] | Host.
-- column engine_package [] | Build under test.
-- column silent_since [time] | Last arrival, by the collector's clock.
-- column silent_s [s] | at - silent_since - behind_s, at least 0.
-- column heard_for_s [s] | From the arrival of its first 30 s window's last execution to silent_since: 0 for an import or a run that is shorter.
-- column is_replaced [] | Another instance of the same service on the same host and GPUs began after its last execution: it was restarted.
-- column replaced_by [] | The instance that began last of those; '' where none did.
-- column executions [executions] | Stored executions of the engine within lookback_s.
-- table: host_name, service_instance_id, silent_s, silent_since, is_replaced, executions
-- example: tachograph query silent_engines
SELECT
    service_instance_id,
    host_name,
    engine_package,
    e.last_received_at AS silent_since,
    greatest((toUnixTimestamp64Milli(toDateTime64({at:DateTime64(9, 'UTC')}, 3, 'UTC')) - toUnixTimestamp64Milli(silent_since)) / 1e3 - {behind_s:Float64}, 0) AS silent_s,
    (toUnixTimestamp64Milli(silent_since) - toUnixTimestamp64Milli(first_received_at)) / 1e3 AS heard_for_s,
    toBool(host_name != '' AND max(first_started_at) OVER place > last_ended_at) AS is_replaced,
    if(is_replaced, argMax(service_instance_id, first_started_at) OVER place, '') AS replaced_by,
    executions
FROM arrived_engines AS e
WINDOW place AS (PARTITION BY host_name, service_name, gpu_ids)
ORDER BY silent_s DESC, service_instance_id
LIMIT {limit:UInt64}
