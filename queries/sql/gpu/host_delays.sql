-- question: How large are the host's delays, how often do they come, and at what period?
-- uses: idle_gaps
-- parameter limit: UInt64 = 10000 | At most so many rows, the most delay first.
-- column service_instance_id [] | The engine instance.
-- column host_name [] | Host.
-- column graph_purpose [] | Purpose of the executions that came late: planning delays `ordinary` ones, measuring delays refreshes and probes.
-- column delay_from_ns [ns] | Delays from this length on ...
-- column delay_below_ns [ns] | ... and below this, twice as long.
-- column delays [delays] | GPU idle gaps of that length that the host caused (`host_late` in gpu_idle).
-- column delay_s [s] | Sum of them.
-- column delay_median_ns [ns] | Median.
-- column period_median_s [s] | Median time from one to the next; empty below two of them.
-- column period_p10_s [s] | 10th percentile of that time: near the median where they come like clockwork.
-- column period_p90_s [s] | 90th percentile.
-- table: host_name, graph_purpose, delay_from_ns, delay_below_ns, delays, delay_s, delay_median_ns, period_median_s, period_p10_s, period_p90_s
-- example: tachograph query host_delays --param cell=bench-r014
SELECT
    service_instance_id,
    any(host_name) AS host_name,
    graph_purpose,
    delay_from_ns,
    2 * delay_from_ns AS delay_below_ns,
    count() AS delays,
    sum(idle_ns) / 1e9 AS delay_s,
    quantileExact(0.5)(idle_ns) AS delay_median_ns,
    if(delays > 1, (quantilesExactIf(0.5, 0.1, 0.9)(since_last_ns / 1e9, since_last_ns > 0) AS periods_s)[1], NULL) AS period_median_s,
    if(delays > 1, periods_s[2], NULL) AS period_p10_s,
    if(delays > 1, periods_s[3], NULL) AS period_p90_s
FROM
(
    SELECT
        service_instance_id, host_name, graph_purpose, idle_ns, delay_from_ns,
        toUnixTimestamp64Nano(started_at) AS at_ns,
        lagInFrame(at_ns, 1, at_ns) OVER (PARTITION BY service_instance_id, graph_purpose, delay_from_ns ORDER BY at_ns ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS last_at_ns,
        at_ns - last_at_ns AS since_last_ns
    FROM
    (
        SELECT *, toInt64(10000 * exp2(floor(log2(idle_ns / 10000)))) AS delay_from_ns
        FROM idle_gaps
        WHERE idle_cause = 'host_late'
    )
)
GROUP BY service_instance_id, graph_purpose, delay_from_ns
ORDER BY delay_s DESC, service_instance_id, graph_purpose, delay_from_ns
LIMIT {limit:UInt64}
