-- question: How do the estimates of each graph compare with its measured cost over time?
-- uses: selected
-- parameter step_s: UInt32 = 10 | Length of a step, in s.
-- parameter graph: String = '' | One graph; '' is any.
-- parameter limit: UInt64 = 50000 | At most so many rows, earliest first.
-- column service_instance_id [] | The engine instance.
-- column step_started_at [time] | Start of the step.
-- column graph [] | The graph, as candidate or executed.
-- column decisions_offered [decisions] | Decisions of any purpose that had it among their candidates.
-- column estimate_step_ns [ns] | Mean of what they charged for it; empty where none offered it.
-- column executions [executions] | Its executions submitted in the step.
-- column gpu_time_median_ns [ns] | Their median GPU time; empty without any.
-- column wall_time_median_ns [ns] | Their median wall time; empty without any.
-- column estimate_to_wall_time [ratio] | estimate_step_ns / wall_time_median_ns.
-- table: step_started_at, graph, estimate_step_ns, gpu_time_median_ns, wall_time_median_ns, estimate_to_wall_time, decisions_offered, executions
-- example: tachograph query estimate_history --param cell=bench-r014 --param step_s=1
SELECT
    service_instance_id,
    step_started_at,
    graph,
    sum(offered) AS decisions_offered,
    sum(charged_ns) / nullIf(decisions_offered, 0) AS estimate_step_ns,
    sum(executed) AS executions,
    if(executions > 0, quantileExactIf(0.5)(gpu_ns, executed > 0), NULL) AS gpu_time_median_ns,
    if(executions > 0, quantileExactIf(0.5)(wall_ns, executed > 0), NULL) AS wall_time_median_ns,
    estimate_step_ns / wall_time_median_ns AS estimate_to_wall_time
FROM
(
    SELECT
        service_instance_id,
        fromUnixTimestamp64Nano(intDiv(toUnixTimestamp64Nano(started_at), {step_s:UInt32} * 1000000000) * {step_s:UInt32} * 1000000000, 'UTC') AS step_started_at,
        graph, offered, charged_ns, executed, graph_gpu_time_ns AS gpu_ns, graph_wall_time_ns AS wall_ns
    FROM selected
    ARRAY JOIN
        arrayConcat([graph_name], scheduler_candidate_graphs) AS graph,
        arrayConcat([0], arrayMap(candidate -> 1, scheduler_candidate_graphs)) AS offered,
        arrayConcat([0], arrayResize(scheduler_candidate_estimates_ns, length(scheduler_candidate_graphs))) AS charged_ns,
        arrayConcat([1], arrayMap(candidate -> 0, scheduler_candidate_graphs)) AS executed
)
WHERE {graph:String} = '' OR graph = {graph:String}
GROUP BY service_instance_id, step_started_at, graph
ORDER BY service_instance_id, step_started_at, graph
LIMIT {limit:UInt64}
