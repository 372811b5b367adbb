-- question: Which engines' schedulers charge a graph more than it costs, and did it change decisions: out of rollups, as the cells were judged last?
-- uses: since
-- parameter to: DateTime64(9, 'UTC') = 2200-01-01 00:00:00 | Executions submitted before this instant.
-- parameter service_instance_id: String = '' | One engine instance; '' is any.
-- parameter host: String = '' | host_name; '' is any.
-- parameter package: String = '' | engine_package; '' is any.
-- parameter recipe: String = '' | engine_recipe; '' is any.
-- parameter arm: String = '' | cell_arm; '' is any.
-- parameter cell: String = '' | One cell: the benchmark's cell_id, or the start of a 30 s window in Unix seconds; '' is any.
-- parameter unjudged_for_s: UInt32 = 60 | What arrived may wait so long to be judged, in s; `judged` tells where it waits longer.
-- parameter limit: UInt64 = 10000 | At most so many engines, the most time turned first.
-- column service_instance_id [] | The engine instance.
-- column host_name [] | Host.
-- column engine_package [] | Build under test.
-- column scheduler_cost_model [] | Cost model that made the estimates.
-- column graph [] | The graph whose overcharge turned the most time; '' without any.
-- column overcharged_s [s] | From the first to the last decision that overcharged it, in the time asked for.
-- column overcharged_since [time] | The first of those.
-- column charge_to_cost [ratio] | Mean charge of those decisions / its measured cost.
-- column decisions_turned [decisions] | Decisions that it would have won at its measured cost, in all of the cells that reach into the time asked for.
-- column turned_s [s] | Wall time of the decisions turned.
-- column tokens_lost [tokens] | Expected tokens lost by the decisions turned, at measured costs.
-- column cell [] | The cell in which it turned the most time, the latest of equal ones; '' without any.
-- column judged [] | What arrived was judged within unjudged_for_s; else `overcharged_engines` knows more.
-- table: host_name, graph, charge_to_cost, overcharged_s, overcharged_since, turned_s, decisions_turned, tokens_lost, scheduler_cost_model
-- example: tachograph query live_overcharged --param from=-90s
SELECT
    service_instance_id,
    any(c.host_name) AS host_name,
    any(c.engine_package) AS engine_package,
    max(c.cost_model_latest).2 AS scheduler_cost_model,
    one.graph AS graph,
    if(graph = '', 0, (toUnixTimestamp64Nano(max(one.overcharged_until)) - toUnixTimestamp64Nano(assumeNotNull(overcharged_since))) / 1e9) AS overcharged_s,
    if(graph = '', NULL, greatest(min(one.overcharged_since), since)) AS overcharged_since,
    if(graph = '', NULL, sum(one.decisions_overcharged * one.overcharge_mean_ns / one.cost_ns) / sum(one.decisions_overcharged)) AS charge_to_cost,
    sum(one.decisions_turned) AS decisions_turned,
    sum(one.turned_s) AS turned_s,
    sum(one.tokens_lost) AS tokens_lost,
    if(graph = '', '', argMax(c.cell, (one.turned_s, one.overcharged_until))) AS cell,
    toBool(min(c.is_judged)) AS judged
FROM
(
    SELECT
        service_instance_id,
        cell,
        any(w.host_name) AS host_name,
        any(w.engine_package) AS engine_package,
        max(w.cost_model_latest) AS cost_model_latest,
        max(w.judgement.judged_at) >= max(w.last_received_at)
            OR greatest(max(w.judgement.judged_at), min(w.last_received_at)) > subtractSeconds(now64(3, 'UTC'), {unjudged_for_s:UInt32}) AS is_judged,
        arrayFilter(
            one -> one.overcharged_until >= since AND one.overcharged_since < {to:DateTime64(9, 'UTC')},
            argMax(w.judgement.inflation, w.judgement.judged_at)
        ) AS inflation
    FROM cell_windows AS w
    WHERE window_started_at > subtractSeconds(since, 30)
        AND window_started_at < {to:DateTime64(9, 'UTC')}
        AND ({service_instance_id:String} = '' OR service_instance_id = {service_instance_id:String})
        AND ({host:String} = '' OR w.host_name = {host:String})
        AND ({package:String} = '' OR w.engine_package = {package:String})
        AND ({recipe:String} = '' OR w.engine_recipe = {recipe:String})
        AND ({arm:String} = '' OR w.cell_arm = {arm:String})
        AND ({cell:String} = '' OR cell = {cell:String})
    GROUP BY service_instance_id, cell
) AS c
LEFT ARRAY JOIN inflation AS one
GROUP BY service_instance_id, graph
-- A graph goes before none.
ORDER BY turned_s DESC, overcharged_s DESC, service_instance_id, graph = '', graph
LIMIT 1 BY service_instance_id
LIMIT {limit:UInt64}
