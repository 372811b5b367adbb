-- question: Which engines lose executions on the way here, of late?
-- uses: arrived, arrived_engines
-- parameter at: DateTime64(9, 'UTC') = now | The instant to judge by, on the collector's clock: what arrived later is not known yet.
-- parameter span_s: UInt32 = 300 | So long before an engine's newest 30 s window, which may not be complete, in s.
-- parameter recent_s: UInt32 = 180 | Without a complete cell that arrived within this, nothing is known of an engine, in s.
-- parameter limit: UInt64 = 10000 | At most so many engines, the most lost first.
-- column service_instance_id [] | The engine instance.
-- column host_name [] | Host.
-- column lost_recently [executions] | Submission numbers missing between the first and the last stored.
-- column lost_fraction [fraction] | lost_recently / submissions between the two.
-- column lost_within_s [s] | Time between the two.
-- table: host_name, service_instance_id, lost_recently, lost_fraction, lost_within_s
-- example: tachograph query lost_executions
SELECT
    service_instance_id,
    any(a.host_name) AS host_name,
    toUInt64(max(sequence_last) - min(sequence_first) + 1 - groupBitmapMerge(sequences)) AS lost_recently,
    lost_recently / (max(sequence_last) - min(sequence_first) + 1) AS lost_fraction,
    (toUnixTimestamp64Nano(max(last_started_at)) - toUnixTimestamp64Nano(min(first_started_at))) / 1e9 AS lost_within_s
FROM arrived AS a
INNER JOIN arrived_engines AS e ON e.service_instance_id = a.service_instance_id
WHERE e.last_received_at > subtractSeconds({at:DateTime64(9, 'UTC')}, {recent_s:UInt32})
    AND a.window_started_at < e.newest_window_at
    AND a.window_started_at >= subtractSeconds(e.newest_window_at, {span_s:UInt32})
GROUP BY service_instance_id
ORDER BY lost_recently DESC, service_instance_id
LIMIT {limit:UInt64}
