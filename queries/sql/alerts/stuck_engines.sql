-- question: Which engines sit in plain decode cell after cell, by their latest complete cells?
-- parameter at: DateTime64(9, 'UTC') = now | The instant to judge by, on the collector's clock: what arrived later is not known yet.
-- parameter lookback_s: UInt32 = 3600 | How long before `at` to look, in s.
-- parameter service_instance_id: String = '' | One engine instance; '' is any.
-- parameter late_after_s: Float64 = 60 | A cell that arrived later than its engine's promptest one by more than this is history, not news, in s.
-- parameter stuck_above: Float64 = 0.3 | A cell is stuck when its plain fraction is above this.
-- parameter minimum_decoding_s: Float64 = 3 | No verdict of stuck before a cell has this much ordinary decoding, in s, so that the first rounds of a live window raise no flag.
-- parameter latest_cells: UInt8 = 3 | So many of the latest cells are looked at.
-- parameter recent_s: UInt32 = 180 | Without a complete cell that arrived within this, nothing is known of an engine, in s.
-- parameter limit: UInt64 = 10000 | At most so many engines, the worst first.
-- column service_instance_id [] | The engine instance.
-- column host_name [] | Host.
-- column engine_package [] | Build under test.
-- column scheduler_cost_model [] | Cost model of the scheduler.
-- column cells_judged [cells] | Of the latest complete cells with enough decoding, how many are recent.
-- column plain_fraction_of_two [fraction] | The plain fraction that at least two of them reach; empty below two.
-- column plain_fraction_max [fraction] | The highest plain fraction of them.
-- column tokens_lost_per_s [tokens/s] | Tokens that the best speculative candidates would have given more in those that are stuck, at measured costs / their decoding time; empty before they are judged, negative where plain decode was right.
-- column cost [] | tokens_lost_per_s in words.
-- column plain_fraction [fraction] | That of the latest.
-- column cell [] | The latest of them that is stuck; the latest where none is.
-- column tokens_per_s [tokens/s] | Of that cell; empty where it reports no tokens.
-- column stuck_since [time] | Start of the first of them that is stuck; empty where none is.
-- table: host_name, plain_fraction_of_two, plain_fraction, cells_judged, stuck_since, cell, tokens_per_s, scheduler_cost_model
-- example: tachograph query stuck_engines --param at=-1h
SELECT
    service_instance_id,
    any(c.host_name) AS host_name,
    any(c.engine_package) AS engine_package,
    any(c.scheduler_cost_model) AS scheduler_cost_model,
    count() AS cells_judged,
    if(cells_judged >= 2, arrayReverseSort(groupArray(fraction))[2], NULL) AS plain_fraction_of_two,
    max(fraction) AS plain_fraction_max,
    sumIf(plain_ns / 1e9 * (judged_speculative_tokens_per_s - judged_plain_tokens_per_s), is_stuck AND is_judged)
        / nullIf(sumIf((plain_ns + speculative_ns) / 1e9, is_stuck AND is_judged), 0) AS tokens_lost_per_s,
    multiIf(
        isNull(tokens_lost_per_s), 'what it costs is not judged yet',
        tokens_lost_per_s < 1, 'speculation would not have been faster',
        concat('it costs ', toString(toUInt64(round(assumeNotNull(tokens_lost_per_s)))), ' tokens/s')
    ) AS cost,
    argMax(fraction, cell_started_at) AS plain_fraction,
    argMax(c.cell, (is_stuck, cell_started_at)) AS cell,
    -- As a tuple: argMax passes by what is empty, and would tell another cell's.
    argMax(tuple(c.batch_tokens_emitted / nullIf((toUnixTimestamp64Nano(cell_ended_at) - toUnixTimestamp64Nano(cell_started_at)) / 1e9, 0)), (is_stuck, cell_started_at)).1 AS tokens_per_s,
    if(max(is_stuck), minIf(cell_started_at, is_stuck), NULL) AS stuck_since
FROM
(
    SELECT
        *,
        plain_ns / (plain_ns + speculative_ns) AS fraction,
        fraction > {stuck_above:Float64} AS is_stuck,
        judged_plain_tokens_per_s > 0 AND judged_speculative_tokens_per_s > 0 AS is_judged,
        max(cell_received_at) OVER (PARTITION BY service_instance_id) > subtractSeconds({at:DateTime64(9, 'UTC')}, {recent_s:UInt32}) AS is_recent,
        row_number() OVER (PARTITION BY service_instance_id ORDER BY cell_started_at DESC) AS place
    FROM
    (
        SELECT
            *,
            -- Plain decode promises one token a lane. A graph that promises more, and was never executed, can only be speculative.
            -- Running cells tell as well what an engine has.
            max(is_speculative) OVER engine
                OR notEmpty(arrayExcept(groupUniqArrayArray(promising) OVER engine, groupUniqArrayArray(executed) OVER engine)) AS can_speculate,
            -- On a clock so far behind or ahead as its cells usually arrive, so that a record which waited out an outage can be
            -- told from a clock that is behind.
            delay_s - minIf(delay_s, is_complete) OVER engine > {late_after_s:Float64} AS is_late
        FROM
        (
            SELECT
                service_instance_id,
                cell,
                any(a.host_name) AS host_name,
                any(engine_package) AS engine_package,
                max(cost_model_latest).2 AS scheduler_cost_model,
                min(first_started_at) AS cell_started_at,
                max(last_ended_at) AS cell_ended_at,
                max(a.last_received_at) AS cell_received_at,
                (toUnixTimestamp64Milli(cell_received_at) - toUnixTimestamp64Milli(cell_ended_at)) / 1e3 AS delay_s,
                -- Its last 30 s window has passed, by its engine's clock.
                addMilliseconds(toDateTime64(max(window_started_at), 3, 'UTC'), toInt64(30000 + 1000 * delay_s)) <= {at:DateTime64(9, 'UTC')} AS is_complete,
                sum(plain_wall_time_ns) AS plain_ns,
                sum(speculative_wall_time_ns) AS speculative_ns,
                sum(tokens_emitted) AS batch_tokens_emitted,
                max(notEmpty(speculative_graphs)) AS is_speculative,
                -- Where a speculative graph was executed, nobody needs to ask what else there is.
                groupUniqArrayArrayIf(graphs, empty(speculative_graphs)) AS executed,
                groupUniqArrayArrayIf(promising_candidates, empty(speculative_graphs)) AS promising,
                -- Of the latest judgement; 0 before.
                argMax(a.judgement.plain_tokens_per_s, a.judgement.judged_at) AS judged_plain_tokens_per_s,
                argMax(a.judgement.speculative_tokens_per_s, a.judgement.judged_at) AS judged_speculative_tokens_per_s
            -- What had arrived by then, as far back: by arrival, so that a host whose clock is off is judged like any other.
            FROM cell_windows AS a
            WHERE received_on BETWEEN toDate(subtractSeconds({at:DateTime64(9, 'UTC')}, {lookback_s:UInt32})) AND toDate({at:DateTime64(9, 'UTC')})
                AND a.last_received_at > subtractSeconds({at:DateTime64(9, 'UTC')}, {lookback_s:UInt32})
                AND a.last_received_at <= {at:DateTime64(9, 'UTC')}
                AND ({service_instance_id:String} = '' OR service_instance_id = {service_instance_id:String})
            GROUP BY service_instance_id, cell
        )
        WINDOW engine AS (PARTITION BY service_instance_id)
    )
    WHERE can_speculate AND is_complete AND NOT is_late AND plain_ns + speculative_ns >= {minimum_decoding_s:Float64} * 1e9
) AS c
WHERE is_recent AND place <= {latest_cells:UInt8}
GROUP BY service_instance_id
ORDER BY plain_fraction_of_two DESC NULLS LAST, service_instance_id
LIMIT {limit:UInt64}
