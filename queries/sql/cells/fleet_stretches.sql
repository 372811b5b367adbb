-- question: How did each engine fare, stretch by stretch: when the cells of a day are too many to look at?
-- uses: since, promising_engines
-- parameter arm: String = '' | cell_arm; '' is any.
-- parameter cell: String = '' | One cell: the benchmark's cell_id, or the start of a 30 s window in Unix seconds; '' is any.
-- parameter concurrency: Int64 = 0 | cell_concurrency; 0 is any.
-- parameter stretch_s: UInt32 = 1800 | Length of a stretch, in s. A cell belongs to the one in which it began.
-- parameter stuck_above: Float64 = 0.3 | A cell is stuck when its plain fraction is above this.
-- parameter minimum_decoding_s: Float64 = 3 | No verdict of stuck before a cell has this much ordinary decoding, in s, so that the first rounds of a live window raise no flag.
-- parameter to: DateTime64(9, 'UTC') = 2200-01-01 00:00:00 | Executions submitted before this instant.
-- parameter history_s: UInt32 = 600 | How long before the time asked for to look for what an engine can execute, what a graph costs and since when it decodes plainly, in s. A cell that began before the time asked for counts from its start, at most from there.
-- parameter service_instance_id: String = '' | One engine instance; '' is any.
-- parameter host: String = '' | host_name; '' is any.
-- parameter package: String = '' | engine_package; '' is any.
-- parameter recipe: String = '' | engine_recipe; '' is any.
-- parameter limit: UInt64 = 50000 | At most so many stretches, newest first.
-- column service_instance_id [] | The engine instance.
-- column cell [] | Of the stretch's cells, the one that is stuck with the most plain decode; where none is stuck, the one with the most plain decode.
-- column host_name [] | Host of the engine.
-- column engine_package [] | Build under test.
-- column engine_recipe [] | Configuration under test.
-- column cell_arm [] | Arm of the comparison, of that cell.
-- column started_at [time] | First submission of the stretch.
-- column ended_at [time] | Last observed completion.
-- column cells [cells] | Cells that began in the stretch.
-- column cells_stuck [cells] | Those of them that are stuck.
-- column stuck [] | At least one is.
-- column has_speculative [] | The engine has a speculative graph to choose from.
-- column plain_fraction [fraction] | Share of ordinary decoding wall time spent in plain decode, over all cells of the stretch; empty without ordinary decoding.
-- column plain_stuck_s [s] | Wall time of ordinary plain decode in its stuck cells.
-- column executions [executions] | Stored executions.
-- column tokens_per_s [tokens/s] | Tokens emitted / time spent in cells, all purposes.
-- table: host_name, started_at, cells, cells_stuck, plain_fraction, plain_stuck_s, tokens_per_s, engine_package, cell
-- example: tachograph query fleet_stretches --param from=-1d
SELECT
    service_instance_id,
    worst_cell AS cell,
    host_name, engine_package, engine_recipe, cell_arm,
    stretch_started_at AS started_at,
    stretch_ended_at AS ended_at,
    cells,
    if(can_speculate, cells_plain, 0) AS cells_stuck,
    toBool(cells_stuck > 0) AS stuck,
    toBool(can_speculate) AS has_speculative,
    plain_sum_ns / nullIf(plain_sum_ns + speculative_sum_ns, 0) AS plain_fraction,
    if(can_speculate, plain_stuck_ns, 0) / 1e9 AS plain_stuck_s,
    stretch_executions AS executions,
    stretch_tokens / nullIf(elapsed_ns / 1e9, 0) AS tokens_per_s
FROM
(
    SELECT
        *,
        max(is_speculative) OVER (PARTITION BY service_instance_id) OR has(promising_engines, toString(service_instance_id)) AS can_speculate
    FROM
    (
        SELECT
            service_instance_id,
            -- Every cell of the stretch that is plain ranks before every other.
            argMaxIf(cell, plain_ns + if(is_plain, toInt64(1e18), 0), is_asked) AS worst_cell,
            argMaxIf(arm_of_cell, plain_ns + if(is_plain, toInt64(1e18), 0), is_asked) AS cell_arm,
            any(host_of_cell) AS host_name,
            any(package_of_cell) AS engine_package,
            any(recipe_of_cell) AS engine_recipe,
            minIf(cell_started_at, is_asked) AS stretch_started_at,
            maxIf(cell_ended_at, is_asked) AS stretch_ended_at,
            countIf(is_asked) AS cells,
            countIf(is_plain AND is_asked) AS cells_plain,
            sumIf(plain_ns, is_asked) AS plain_sum_ns,
            sumIf(speculative_ns, is_asked) AS speculative_sum_ns,
            sumIf(plain_ns, is_plain AND is_asked) AS plain_stuck_ns,
            sumIf(cell_executions, is_asked) AS stretch_executions,
            sumIf(cell_tokens, is_asked) AS stretch_tokens,
            sumIf(toUnixTimestamp64Nano(cell_ended_at) - toUnixTimestamp64Nano(cell_started_at), is_asked) AS elapsed_ns,
            max(is_cell_speculative) AS is_speculative
        FROM
        (
            SELECT
                service_instance_id,
                cell,
                any(w.host_name) AS host_of_cell,
                any(w.engine_package) AS package_of_cell,
                any(w.engine_recipe) AS recipe_of_cell,
                any(w.cell_arm) AS arm_of_cell,
                min(first_started_at) AS cell_started_at,
                max(last_ended_at) AS cell_ended_at,
                sum(executions) AS cell_executions,
                sum(tokens_emitted) AS cell_tokens,
                sum(plain_wall_time_ns) AS plain_ns,
                sum(speculative_wall_time_ns) AS speculative_ns,
                plain_ns + speculative_ns >= 1e9 * {minimum_decoding_s:Float64}
                    AND plain_ns > {stuck_above:Float64} * (plain_ns + speculative_ns) AS is_plain,
                max(last_started_at) >= since
                    AND cell_started_at < {to:DateTime64(9, 'UTC')}
                    AND ({arm:String} = '' OR arm_of_cell = {arm:String})
                    AND ({cell:String} = '' OR cell = {cell:String})
                    AND ({concurrency:Int64} = 0 OR ifNull(max(cell_concurrency) = {concurrency:Int64}, false)) AS is_asked,
                max(notEmpty(speculative_graphs)) AS is_cell_speculative
            FROM cell_windows AS w
            WHERE window_started_at > subtractSeconds(since, {history_s:UInt32} + 30)
                AND window_started_at < {to:DateTime64(9, 'UTC')}
                AND ({service_instance_id:String} = '' OR service_instance_id = {service_instance_id:String})
                AND ({host:String} = '' OR w.host_name = {host:String})
                AND ({package:String} = '' OR w.engine_package = {package:String})
                AND ({recipe:String} = '' OR w.engine_recipe = {recipe:String})
            GROUP BY service_instance_id, cell
        )
        GROUP BY service_instance_id, toStartOfInterval(toDateTime(cell_started_at, 'UTC'), toIntervalSecond({stretch_s:UInt32}))
    )
)
WHERE cells > 0
ORDER BY started_at DESC, service_instance_id
LIMIT {limit:UInt64}
