-- part: Cells that were over by the instant asked for, with what their engine's clock says of it: on that clock so far behind or ahead as its cells usually arrive, so that a record which waited out an outage can be told from a clock that is behind.
-- uses: arrived
-- parameter at: DateTime64(9, 'UTC') = now | The instant to judge by, on the collector's clock: what arrived later is not known yet.
-- parameter late_after_s: Float64 = 60 | A cell that arrived later than its engine's promptest one by more than this is history, not news, in s.
SELECT
    *,
    delay_s - min(delay_s) OVER (PARTITION BY service_instance_id) > {late_after_s:Float64} AS is_late
FROM
(
    SELECT
        service_instance_id,
        cell,
        any(host_name) AS host_name,
        any(engine_package) AS engine_package,
        max(cost_model_latest).2 AS scheduler_cost_model,
        min(first_started_at) AS cell_started_at,
        max(last_ended_at) AS cell_ended_at,
        max(a.last_received_at) AS cell_received_at,
        (toUnixTimestamp64Milli(cell_received_at) - toUnixTimestamp64Milli(cell_ended_at)) / 1e3 AS delay_s,
        sum(plain_wall_time_ns) AS plain_ns,
        sum(speculative_wall_time_ns) AS speculative_ns,
        sum(tokens_emitted) AS batch_tokens_emitted,
        -- Of the latest judgement; 0 before.
        argMax(a.judgement.plain_tokens_per_s, a.judgement.judged_at) AS judged_plain_tokens_per_s,
        argMax(a.judgement.speculative_tokens_per_s, a.judgement.judged_at) AS judged_speculative_tokens_per_s
    FROM arrived AS a
    GROUP BY service_instance_id, cell
    -- Its last 30 s window has passed, by its engine's clock.
    HAVING addMilliseconds(toDateTime64(max(window_started_at), 3, 'UTC'), toInt64(30000 + 1000 * delay_s)) <= {at:DateTime64(9, 'UTC')}
)
