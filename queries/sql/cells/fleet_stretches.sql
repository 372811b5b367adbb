-- question: How did each engine fare, stretch by stretch: when the cells of a day are too many to look at?
-- uses: cells_nearby, engine_graphs
-- parameter arm: String = '' | cell_arm; '' is any.
-- parameter cell: String = '' | One cell: the benchmark's cell_id, or the start of a 30 s window in Unix seconds; '' is any.
-- parameter concurrency: Int64 = 0 | cell_concurrency; 0 is any.
-- parameter stretch_s: UInt32 = 1800 | Length of a stretch, in s. A cell belongs to the one in which it began.
-- parameter stuck_above: Float64 = 0.3 | A cell is stuck when its plain fraction is above this.
-- parameter minimum_decoding_s: Float64 = 3 | No verdict of stuck before a cell has this much ordinary decoding, in s, so that the first rounds of a live window raise no flag.
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
    s.service_instance_id AS service_instance_id,
    worst_cell AS cell,
    host_name, engine_package, engine_recipe, cell_arm,
    stretch_started_at AS started_at,
    stretch_ended_at AS ended_at,
    cells,
    if(g.has_speculative, cells_plain, 0) AS cells_stuck,
    toBool(cells_stuck > 0) AS stuck,
    toBool(g.has_speculative) AS has_speculative,
    plain_sum_ns / nullIf(plain_sum_ns + speculative_sum_ns, 0) AS plain_fraction,
    if(g.has_speculative, plain_stuck_ns, 0) / 1e9 AS plain_stuck_s,
    stretch_executions AS executions,
    stretch_tokens / nullIf(elapsed_ns / 1e9, 0) AS tokens_per_s
FROM
(
    SELECT
        service_instance_id,
        -- Every cell of the stretch that is plain ranks before every other.
        argMax(cell, plain_ns + if(is_plain, toInt64(1e18), 0)) AS worst_cell,
        argMax(arm_of_cell, plain_ns + if(is_plain, toInt64(1e18), 0)) AS cell_arm,
        any(host_of_cell) AS host_name,
        any(package_of_cell) AS engine_package,
        any(recipe_of_cell) AS engine_recipe,
        min(cell_started_at) AS stretch_started_at,
        max(cell_ended_at) AS stretch_ended_at,
        count() AS cells,
        countIf(is_plain) AS cells_plain,
        sum(plain_ns) AS plain_sum_ns,
        sum(speculative_ns) AS speculative_sum_ns,
        sumIf(plain_ns, is_plain) AS plain_stuck_ns,
        sum(cell_executions) AS stretch_executions,
        sum(cell_tokens) AS stretch_tokens,
        sum(toUnixTimestamp64Nano(cell_ended_at) - toUnixTimestamp64Nano(cell_started_at)) AS elapsed_ns
    FROM
    (
        SELECT
            service_instance_id,
            cell,
            any(host_name) AS host_of_cell,
            any(engine_package) AS package_of_cell,
            any(engine_recipe) AS recipe_of_cell,
            any(n.cell_arm) AS arm_of_cell,
            min(first_started_at) AS cell_started_at,
            max(last_ended_at) AS cell_ended_at,
            sum(executions) AS cell_executions,
            sum(tokens_emitted) AS cell_tokens,
            sumIf(ordinary_wall_time_ns, graph_kind = 'plain_decode') AS plain_ns,
            sumIf(ordinary_wall_time_ns, graph_kind = 'speculative') AS speculative_ns,
            plain_ns + speculative_ns >= 1e9 * {minimum_decoding_s:Float64}
                AND plain_ns > {stuck_above:Float64} * (plain_ns + speculative_ns) AS is_plain
        FROM cells_nearby AS n
        WHERE ({arm:String} = '' OR n.cell_arm = {arm:String})
            AND ({cell:String} = '' OR cell = {cell:String})
            AND ({concurrency:Int64} = 0 OR cell_concurrency = {concurrency:Int64})
        GROUP BY service_instance_id, cell
        HAVING max(last_started_at) >= asked.since AND cell_started_at < asked.until
    )
    GROUP BY service_instance_id, toStartOfInterval(toDateTime(cell_started_at, 'UTC'), toIntervalSecond({stretch_s:UInt32}))
) AS s
LEFT JOIN engine_graphs AS g ON g.service_instance_id = s.service_instance_id
ORDER BY started_at DESC, service_instance_id
LIMIT {limit:UInt64}
