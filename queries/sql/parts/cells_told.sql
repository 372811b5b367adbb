-- part: Each cell asked for: its figures by the rollup, whether it is stuck, and what it was judged to be at last. One look at one table: nothing is judged here.
-- uses: since
-- parameter arm: String = '' | cell_arm; '' is any.
-- parameter cell: String = '' | One cell: the benchmark's cell_id, or the start of a 30 s window in Unix seconds; '' is any.
-- parameter to: DateTime64(9, 'UTC') = 2200-01-01 00:00:00 | Executions submitted before this instant.
-- parameter history_s: UInt32 = 600 | How long before the time asked for to look for what an engine can execute, what a graph costs and since when it decodes plainly, in s. A cell that began before the time asked for counts from its start, at most from there.
-- parameter service_instance_id: String = '' | One engine instance; '' is any.
-- parameter host: String = '' | host_name; '' is any.
-- parameter package: String = '' | engine_package; '' is any.
-- parameter recipe: String = '' | engine_recipe; '' is any.
-- parameter stuck_above: Float64 = 0.3 | A cell is stuck when its plain fraction is above this.
-- parameter minimum_decoding_s: Float64 = 3 | No verdict of stuck before a cell has this much ordinary decoding, in s, so that the first rounds of a live window raise no flag.
SELECT
    *,
    (toUnixTimestamp64Nano(cell_ended_at) - toUnixTimestamp64Nano(cell_started_at)) / 1e9 AS elapsed_s,
    plain_ns / nullIf(plain_ns + speculative_ns, 0) AS plain_fraction,
    can_speculate AND plain_ns > {stuck_above:Float64} * (plain_ns + speculative_ns)
        AND plain_ns + speculative_ns >= 1e9 * {minimum_decoding_s:Float64} AS is_stuck,
    -- Only then is what was not found not there. What a graph costs may be measured after the cell: it is looked for once more then.
    judged_executions = cell_executions
        AND (has_later OR cell_received_at < subtractSeconds(now64(3, 'UTC'), 30))
        AND (NOT is_stuck OR judged_speculative_tokens_per_s > 0
            OR judged_at >= addSeconds(cell_received_at, {history_s:UInt32})) AS is_whole
FROM
(
    SELECT
        *,
        -- Plain decode promises one token a lane. A graph that promises more, and was never executed, can only be speculative.
        max(is_speculative) OVER engine
            OR notEmpty(arrayExcept(groupUniqArrayArray(promising) OVER engine, groupUniqArrayArray(executed) OVER engine)) AS can_speculate,
        max(cell_started_at) OVER engine > cell_last_started_at AS has_later
    FROM
    (
        SELECT
            service_instance_id,
            cell,
            any(w.host_name) AS host_name,
            max(service_name) AS service_name,
            max(engine_name) AS engine_name,
            max(engine_version) AS engine_version,
            any(w.engine_package) AS engine_package,
            any(w.engine_recipe) AS engine_recipe,
            argMax(w.cost_model_latest.2, w.cost_model_latest.1) AS scheduler_cost_model,
            max(cell_id) AS cell_id,
            any(w.cell_arm) AS cell_arm,
            max(cell_position) AS cell_position,
            max(cell_concurrency) AS cell_concurrency,
            min(first_started_at) AS cell_started_at,
            max(last_started_at) AS cell_last_started_at,
            max(last_ended_at) AS cell_ended_at,
            max(w.last_received_at) AS cell_received_at,
            max(w.window_started_at) AS last_window_started_at,
            sum(executions) AS cell_executions,
            toUInt64(greatest(max(sequence_last) - min(sequence_first) + 1 - toInt64(sum(w.executions)), 0)) AS executions_lost,
            sum(plain_wall_time_ns) AS plain_ns,
            sum(speculative_wall_time_ns) AS speculative_ns,
            sum(plain_executions) AS plain_rounds,
            sum(speculative_executions) AS speculative_rounds,
            sum(tokens_emitted) AS tokens,
            sum(gpu_time_ns) AS gpu_ns,
            max(notEmpty(speculative_graphs)) AS is_speculative,
            -- Where a speculative graph was executed, nobody needs to ask what else there is.
            groupUniqArrayArrayIf(graphs, empty(w.speculative_graphs)) AS executed,
            groupUniqArrayArrayIf(promising_candidates, empty(w.speculative_graphs)) AS promising,
            -- Of the latest judgement. One by one, so that a question reads what it tells, and no more.
            max(w.judgement.judged_at) AS judged_at,
            argMax(w.judgement.executions, w.judgement.judged_at) AS judged_executions,
            argMax(w.judgement.turned_s, w.judgement.judged_at) AS judged_turned_s,
            argMax(w.judgement.decisions_turned, w.judgement.judged_at) AS judged_decisions_turned,
            argMax(w.judgement.plain_since, w.judgement.judged_at) AS judged_plain_since,
            argMax(w.judgement.plain_until, w.judgement.judged_at) AS judged_plain_until,
            argMax(w.judgement.plain_tokens_per_s, w.judgement.judged_at) AS judged_plain_tokens_per_s,
            argMax(w.judgement.speculative_tokens_per_s, w.judgement.judged_at) AS judged_speculative_tokens_per_s,
            argMax(w.judgement.best_speculative_graph, w.judgement.judged_at) AS judged_best_speculative_graph,
            argMax(w.judgement.inflation, w.judgement.judged_at) AS judged_inflation
        FROM cell_windows AS w
        WHERE window_started_at > subtractSeconds(since, {history_s:UInt32} + 30)
            AND window_started_at < {to:DateTime64(9, 'UTC')}
            AND ({service_instance_id:String} = '' OR service_instance_id = {service_instance_id:String})
            AND ({host:String} = '' OR w.host_name = {host:String})
            AND ({package:String} = '' OR w.engine_package = {package:String})
            AND ({recipe:String} = '' OR w.engine_recipe = {recipe:String})
        GROUP BY service_instance_id, cell
    )
    WINDOW engine AS (PARTITION BY service_instance_id)
)
WHERE ({arm:String} = '' OR cell_arm = {arm:String})
    AND ({cell:String} = '' OR cell = {cell:String})
    AND cell_last_started_at >= since
    AND cell_started_at < {to:DateTime64(9, 'UTC')}
