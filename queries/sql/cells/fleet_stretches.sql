-- question: How did each engine fare, stretch by stretch: when the cells of a day are too many to look at?
-- uses: since, unsettled
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
-- column last_received_at [time] | Last arrival, by the collector's clock: before ended_at where the engine's clock is ahead.
-- column cells [cells] | Cells that began in the stretch.
-- column cells_stuck [cells] | Those of them that are stuck.
-- column stuck [] | At least one is.
-- column has_speculative [] | The engine has a speculative graph to choose from.
-- column plain_fraction [fraction] | Share of ordinary decoding wall time spent in plain decode, over all cells of the stretch; empty without ordinary decoding.
-- column plain_stuck_s [s] | Wall time of ordinary plain decode in its stuck cells.
-- column executions [executions] | Stored executions.
-- column tokens_per_s [tokens/s] | Tokens emitted / time spent in cells, all purposes: cells that do not say how many count as none; empty where no cell does.
-- table: host_name, started_at, cells, cells_stuck, plain_fraction, plain_stuck_s, tokens_per_s, engine_package, cell
-- example: tachograph query fleet_stretches --param from=-1d
SELECT
    service_instance_id,
    argMax(worst_cell, rank) AS cell,
    any(c.host_name) AS host_name,
    any(c.engine_package) AS engine_package,
    any(c.engine_recipe) AS engine_recipe,
    argMax(arm, rank) AS cell_arm,
    min(began_at) AS started_at,
    max(c.ended_at) AS ended_at,
    max(received_at) AS last_received_at,
    sum(if(is_whole, c.cells, 1)) AS cells,
    if(speculates, sum(plain_cells + is_plain), 0) AS cells_stuck,
    toBool(cells_stuck > 0) AS stuck,
    toBool(speculates) AS has_speculative,
    sum(plain_ns) / nullIf(sum(plain_ns) + sum(speculative_ns), 0) AS plain_fraction,
    if(speculates, sum(plain_cells_ns) + sumIf(plain_ns, is_plain), 0) / 1e9 AS plain_stuck_s,
    sum(c.executions) AS executions,
    sum(tokens) / nullIf(sum(if(is_whole, elapsed_ns, toUnixTimestamp64Nano(c.ended_at) - toUnixTimestamp64Nano(began_at))) / 1e9, 0) AS tokens_per_s
FROM
(
    -- Each cell; but of settled half hours all that lie within, as they were added up, in one row.
    SELECT
        service_instance_id,
        is_whole,
        worst_cell,
        any(w.arm) AS arm,
        any(w.host_name) AS host_name,
        any(w.engine_package) AS engine_package,
        any(w.engine_recipe) AS engine_recipe,
        min(w.began_at) AS began_at,
        max(w.last_started_at) AS last_started_at,
        max(w.ended_at) AS ended_at,
        max(w.received_at) AS received_at,
        sum(w.plain_ns) AS plain_ns,
        sum(w.speculative_ns) AS speculative_ns,
        sum(w.executions) AS executions,
        sum(w.tokens) AS tokens,
        is_whole = 0 AND plain_ns + speculative_ns >= 1e9 * {minimum_decoding_s:Float64}
            AND plain_ns > {stuck_above:Float64} * (plain_ns + speculative_ns) AS is_plain,
        sum(w.cells) AS cells,
        sum(w.plain_cells) AS plain_cells,
        sum(w.plain_cells_ns) AS plain_cells_ns,
        -- Every cell of the stretch that is plain ranks before every other.
        plain_ns + sum(w.rank) + is_plain * toInt64(1e18) AS rank,
        sum(w.elapsed_ns) AS elapsed_ns,
        max(concurrency) AS cell_concurrency,
        -- Plain decode promises one token a lane. A graph that promises more, and was never executed, can only be speculative.
        max(max(is_speculative)) OVER engine
            OR notEmpty(arrayExcept(groupUniqArrayArray(groupUniqArrayArray(promising)) OVER engine,
                groupUniqArrayArray(groupUniqArrayArray(executed)) OVER engine)) AS speculates
    FROM
    (
        SELECT
            service_instance_id, host_name, engine_package, engine_recipe, 0 AS is_whole, cell AS worst_cell, cell_arm AS arm, cell_concurrency AS concurrency,
            first_started_at AS began_at, last_started_at, last_ended_at AS ended_at, last_received_at AS received_at, executions, tokens_emitted AS tokens,
            plain_wall_time_ns AS plain_ns, speculative_wall_time_ns AS speculative_ns,
            0 AS cells, 0 AS plain_cells, 0 AS plain_cells_ns, 0 AS rank, 0 AS elapsed_ns,
            notEmpty(speculative_graphs) AS is_speculative, graphs AS executed, promising_candidates AS promising
        FROM cell_windows
        WHERE window_started_at > subtractSeconds(since, {history_s:UInt32} + 30)
            AND window_started_at < {to:DateTime64(9, 'UTC')}
            AND (NOT ({stretch_s:UInt32} % 1800 = 0 AND {concurrency:Int64} = 0 AND {stuck_above:Float64} = 0.3 AND {minimum_decoding_s:Float64} = 3)
                OR toStartOfInterval(window_started_at, INTERVAL 30 MINUTE) IN (SELECT arrayJoin(unsettled)))
        UNION ALL
        SELECT
            service_instance_id, host_name, engine_package, engine_recipe, reaching_cell = '', worst_cell, worst_arm, NULL,
            cells_started_at, last_started_at, cells_ended_at, last_received_at, cells_executions, cells_tokens,
            cells_plain_ns, cells_speculative_ns,
            cells_within, plain_cells, plain_cells_ns, if(reaching_cell = '', worst_rank - cells_plain_ns, 0), cells_elapsed_ns,
            is_speculative, plain_graphs, promising_candidates
        FROM engine_half_hours FINAL
        WHERE {stretch_s:UInt32} % 1800 = 0 AND {concurrency:Int64} = 0 AND {stuck_above:Float64} = 0.3 AND {minimum_decoding_s:Float64} = 3
            AND half_hour_started_at >= since
            AND half_hour_started_at < {to:DateTime64(9, 'UTC')}
            AND half_hour_started_at NOT IN (SELECT arrayJoin(unsettled))
    ) AS w
    WHERE ({service_instance_id:String} = '' OR service_instance_id = {service_instance_id:String})
        AND ({host:String} = '' OR w.host_name = {host:String})
        AND ({package:String} = '' OR w.engine_package = {package:String})
        AND ({recipe:String} = '' OR w.engine_recipe = {recipe:String})
    GROUP BY service_instance_id, is_whole, worst_cell
    WINDOW engine AS (PARTITION BY service_instance_id)
) AS c
WHERE last_started_at >= since
    AND began_at < {to:DateTime64(9, 'UTC')}
    AND (NOT is_whole OR c.cells > 0)
    AND ({arm:String} = '' OR arm = {arm:String})
    AND ({cell:String} = '' OR worst_cell = {cell:String})
    AND ({concurrency:Int64} = 0 OR cell_concurrency = {concurrency:Int64})
GROUP BY service_instance_id, speculates, toStartOfInterval(toDateTime(began_at, 'UTC'), toIntervalSecond({stretch_s:UInt32}))
ORDER BY started_at DESC, service_instance_id
LIMIT {limit:UInt64}
