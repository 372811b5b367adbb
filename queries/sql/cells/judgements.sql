-- question: What do the executions say of each cell that has not been judged yet: as rows of cell_windows?
-- uses: cells_told, unjudged_cells, plain_alternatives, plain_stretches, overcharged_graphs
-- plan: cells_to_judge
-- column received_on [] | Day of its last arrival.
-- column window_started_at [time] | Its last 30 s window.
-- column service_instance_id [] | The engine instance.
-- column cell [] | The cell.
-- column host_name [] | Host of the engine.
-- column engine_package [] | Build under test.
-- column engine_recipe [] | Configuration under test.
-- column cell_arm [] | Arm of the comparison.
-- column first_started_at [time] | The latest instant there is, so that it changes nothing.
-- column last_received_at [time] | Last arrival.
-- column sequence_first [] | The largest number there is, so that it changes nothing.
-- column judgement [] | When it was judged, by how many executions, and what was found, as cell_windows has it.
-- table: service_instance_id, cell, judgement
-- example: tachograph query judgements --param from=-15m
SELECT
    toDate(cell_received_at) AS received_on,
    last_window_started_at AS window_started_at,
    t.service_instance_id AS service_instance_id,
    t.cell AS cell,
    host_name, engine_package, engine_recipe, cell_arm,
    toDateTime64('2200-01-01', 9, 'UTC') AS first_started_at,
    cell_received_at AS last_received_at,
    9223372036854775807 AS sequence_first,
    CAST((
        now64(3, 'UTC'),
        cell_executions,
        ifNull(p.turned_s, 0),
        ifNull(p.decisions_turned, 0),
        s.plain_since,
        s.plain_until,
        ifNull(p.plain_tokens_per_s, 0),
        ifNull(p.speculative_tokens_per_s, 0),
        ifNull(p.best_speculative_graph, ''),
        o.inflation
    ), 'Tuple(judged_at DateTime64(3, \'UTC\'), executions UInt64, turned_s Float64, decisions_turned UInt64, plain_since DateTime64(9, \'UTC\'), plain_until DateTime64(9, \'UTC\'), plain_tokens_per_s Float64, speculative_tokens_per_s Float64, best_speculative_graph String, inflation Array(Tuple(graph String, measured_in String, cost_ns Int64, gpu_time_median_ns Int64, estimate_mean_ns Float64, estimate_max_ns Int64, decisions UInt64, decisions_overcharged UInt64, overcharge_mean_ns Float64, overcharged_since DateTime64(9, \'UTC\'), overcharged_until DateTime64(9, \'UTC\'), decisions_turned UInt64, turned_s Float64, tokens_lost Float64)))') AS judgement
FROM cells_told AS t
LEFT JOIN plain_alternatives AS p ON p.service_instance_id = t.service_instance_id AND p.cell = t.cell
LEFT JOIN
(
    SELECT f.service_instance_id AS service_instance_id, f.cell AS cell, a.plain_since AS plain_since, a.plain_until AS plain_until
    FROM cells_told AS f
    INNER JOIN plain_stretches AS a ON a.service_instance_id = f.service_instance_id
    WHERE f.is_stuck AND a.plain_since < f.cell_ended_at AND a.plain_until > f.cell_started_at
    ORDER BY service_instance_id, cell, least(a.plain_until, f.cell_ended_at) - greatest(a.plain_since, f.cell_started_at) DESC
    LIMIT 1 BY service_instance_id, cell
) AS s ON s.service_instance_id = t.service_instance_id AND s.cell = t.cell
LEFT JOIN
(
    SELECT
        service_instance_id,
        cell,
        groupArray((graph, measured_in, cost_ns, gpu_time_median_ns, estimate_mean_ns, estimate_max_ns, decisions, decisions_overcharged, overcharge_mean_ns,
            since_overcharged, until_overcharged, decisions_turned, turned_s, tokens_lost)) AS inflation
    FROM overcharged_graphs
    GROUP BY service_instance_id, cell
) AS o ON o.service_instance_id = t.service_instance_id AND o.cell = t.cell
WHERE (t.service_instance_id, t.cell) IN (SELECT arrayJoin(unjudged_cells))
