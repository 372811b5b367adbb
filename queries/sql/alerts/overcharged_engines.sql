-- question: Which engines' schedulers charge a graph more than it costs, for how long, and did it change decisions?
-- uses: decisions, cells_nearby, asked
-- plan: charged_cells
-- parameter arm: String = '' | cell_arm; '' is any.
-- parameter cell: String = '' | One cell: the benchmark's cell_id, or the start of a 30 s window in Unix seconds; '' is any.
-- parameter limit: UInt64 = 10000 | At most so many engines, the most time turned first.
-- column service_instance_id [] | The engine instance.
-- column host_name [] | Host.
-- column engine_package [] | Build under test.
-- column scheduler_cost_model [] | Cost model that made the estimates.
-- column graph [] | The graph whose overcharge turned the most time; '' without any.
-- column overcharged_s [s] | From the first to the last decision that overcharged it, in the time asked for.
-- column overcharged_since [time] | The first of those.
-- column charge_to_cost [ratio] | Mean charge of those decisions / its measured cost.
-- column decisions_turned [decisions] | Decisions that it would have won at its measured cost.
-- column turned_s [s] | Wall time of the decisions turned.
-- column tokens_lost [tokens] | Expected tokens lost by the decisions turned, at measured costs.
-- column cell [] | The cell in which it turned the most time, the latest of equal ones; '' without any.
-- table: host_name, graph, charge_to_cost, overcharged_s, overcharged_since, turned_s, decisions_turned, tokens_lost, scheduler_cost_model
-- example: tachograph query overcharged_engines --param from=-2m
SELECT
    e.service_instance_id AS service_instance_id,
    e.host_name AS host_name,
    e.engine_package AS engine_package,
    e.scheduler_cost_model AS scheduler_cost_model,
    o.graph AS graph,
    if(o.graph = '', 0, (toUnixTimestamp64Nano(o.until) - toUnixTimestamp64Nano(o.since)) / 1e9) AS overcharged_s,
    if(o.graph = '', NULL, o.since) AS overcharged_since,
    if(o.graph = '', NULL, o.charge_to_cost) AS charge_to_cost,
    o.decisions_turned AS decisions_turned,
    o.turned_s AS turned_s,
    o.tokens_lost AS tokens_lost,
    o.cell AS cell
FROM
(
    SELECT
        service_instance_id,
        any(n.host_name) AS host_name,
        any(n.engine_package) AS engine_package,
        max(cost_model_latest).2 AS scheduler_cost_model
    FROM cells_nearby AS n
    WHERE window_started_at > subtractSeconds(asked.since, 30)
        AND ({arm:String} = '' OR n.cell_arm = {arm:String})
        AND ({cell:String} = '' OR n.cell = {cell:String})
    GROUP BY service_instance_id
) AS e
LEFT JOIN
(
    SELECT
        c.service_instance_id AS service_instance_id,
        c.graph AS graph,
        minIf(c.since_in_cell, c.overcharged_in_cell > 0) AS since,
        maxIf(c.until_in_cell, c.overcharged_in_cell > 0) AS until,
        sum(c.charges_in_cell) / sum(c.overcharged_in_cell) AS charge_to_cost,
        sum(c.turned_in_cell) AS decisions_turned,
        sum(c.turned_ns_in_cell) / 1e9 AS turned_s,
        sum(c.lost_in_cell) AS tokens_lost,
        argMaxIf(c.cell, (c.turned_ns_in_cell, c.until_in_cell), c.overcharged_in_cell > 0) AS cell
    FROM
    (
        SELECT
            d.service_instance_id AS service_instance_id,
            d.graph AS graph,
            d.cell AS cell,
            minIf(d.started_at, is_overcharged) AS since_in_cell,
            maxIf(d.started_at, is_overcharged) AS until_in_cell,
            countIf(is_overcharged) AS overcharged_in_cell,
            sumIf(d.estimate_ns / d.cost_ns, is_overcharged) AS charges_in_cell,
            countIf(turned AND position = best) AS turned_in_cell,
            sumIf(graph_wall_time_ns, turned AND position = best) AS turned_ns_in_cell,
            sumIf((rates[best] - rates[chosen]) * graph_wall_time_ns, turned AND position = best) AS lost_in_cell
        FROM
        (
            SELECT service_instance_id, cell, started_at, graph_wall_time_ns, rates, chosen, best, turned, graph, estimate_ns, cost_ns, is_overcharged, position
            FROM decisions
            ARRAY JOIN graphs AS graph, estimates_ns AS estimate_ns, costs_ns AS cost_ns, overcharged AS is_overcharged, arrayEnumerate(graphs) AS position
            WHERE started_at >= asked.since AND started_at < asked.until AND cost_ns IS NOT NULL
        ) AS d
        GROUP BY service_instance_id, graph, cell
    ) AS c
    GROUP BY service_instance_id, graph
    HAVING sum(c.overcharged_in_cell) > 0
    ORDER BY turned_s DESC, until - since DESC, graph
    LIMIT 1 BY service_instance_id
) AS o ON o.service_instance_id = e.service_instance_id
ORDER BY turned_s DESC, overcharged_s DESC, service_instance_id
LIMIT {limit:UInt64}
