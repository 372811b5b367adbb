-- question: Which executions moved an estimate, from what to what?
-- uses: selected
-- parameter moved_above: Float64 = 0.02 | Only estimates that changed by more than this fraction from one decision to the next.
-- parameter graph: String = '' | One graph; '' is any.
-- parameter limit: UInt64 = 1000 | At most so many moves, the largest first.
-- column service_instance_id [] | The engine instance.
-- column cell [] | Cell of the decision.
-- column host_name [] | Host of the engine.
-- column started_at [time] | The first decision with the new estimate.
-- column graph_sequence [] | Submission number of that decision's execution.
-- column graph [] | The graph whose estimate moved.
-- column estimate_before_ns [ns] | What the decision before charged for it.
-- column estimate_after_ns [ns] | What this decision charged.
-- column estimate_change_percent [%] | The change.
-- column moved_by_sequence [] | Submission number of the graph's latest execution observed complete between the two decisions: what moved the estimate. Empty where there is none: the estimate expired, or another rule moved it.
-- column moved_by_purpose [] | Why that one was executed.
-- column moved_by_gpu_time_ns [ns] | Its GPU time.
-- column moved_by_wall_time_ns [ns] | Its wall time.
-- column moved_by_queue_depth [submissions] | Submissions in flight when it was submitted.
-- column moved_by_span_id [] | Its span, in hex.
-- table: graph, estimate_before_ns, estimate_after_ns, moved_by_sequence, moved_by_gpu_time_ns, moved_by_wall_time_ns, moved_by_queue_depth, started_at, cell, host_name, moved_by_purpose, estimate_change_percent
-- example: tachograph query estimate_moves --param cell=bench-r014
SELECT
    m.service_instance_id AS service_instance_id,
    m.cell AS cell,
    m.host_name AS host_name,
    m.decided_at AS started_at,
    m.graph_sequence AS graph_sequence,
    m.graph AS graph,
    estimate_before_ns,
    estimate_after_ns,
    100 * (estimate_after_ns / estimate_before_ns - 1) AS estimate_change_percent,
    if(x.graph_name != '' AND x.ended_at > m.decided_before_at, x.graph_sequence, NULL) AS moved_by_sequence,
    if(x.graph_name != '' AND x.ended_at > m.decided_before_at, toString(x.graph_purpose), '') AS moved_by_purpose,
    if(x.graph_name != '' AND x.ended_at > m.decided_before_at, x.graph_gpu_time_ns, NULL) AS moved_by_gpu_time_ns,
    if(x.graph_name != '' AND x.ended_at > m.decided_before_at, x.graph_wall_time_ns, NULL) AS moved_by_wall_time_ns,
    if(x.graph_name != '' AND x.ended_at > m.decided_before_at, x.graph_queue_depth, NULL) AS moved_by_queue_depth,
    if(x.graph_name != '' AND x.ended_at > m.decided_before_at, lower(hex(x.span_id)), '') AS moved_by_span_id
FROM
(
    SELECT
        service_instance_id, cell, host_name, decided_at, decided_before_at, graph_sequence, graph, estimate_after_ns,
        graphs_before[indexOf(graphs_before, graph)] AS same_graph,
        estimates_before[indexOf(graphs_before, graph)] AS estimate_before_ns
    FROM
    (
        SELECT
            service_instance_id,
            cell,
            host_name,
            started_at AS decided_at,
            graph_sequence,
            scheduler_candidate_graphs AS graphs,
            scheduler_candidate_estimates_ns AS estimates_ns,
            lagInFrame(started_at) OVER decisions AS decided_before_at,
            lagInFrame(scheduler_candidate_graphs) OVER decisions AS graphs_before,
            lagInFrame(scheduler_candidate_estimates_ns) OVER decisions AS estimates_before
        FROM selected
        WHERE notEmpty(scheduler_candidate_graphs) AND length(scheduler_candidate_graphs) = length(scheduler_candidate_estimates_ns)
        WINDOW decisions AS (PARTITION BY service_instance_id ORDER BY started_at, graph_sequence ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)
    )
    ARRAY JOIN graphs AS graph, estimates_ns AS estimate_after_ns
    WHERE estimates_ns != estimates_before
        AND same_graph != ''
        AND estimate_before_ns > 0
        AND abs(estimate_after_ns / estimate_before_ns - 1) > {moved_above:Float64}
        AND ({graph:String} = '' OR graph = {graph:String})
) AS m
ASOF LEFT JOIN
(
    SELECT
        service_instance_id, graph_name, graph_sequence, graph_purpose, graph_gpu_time_ns, graph_wall_time_ns, graph_queue_depth, span_id,
        addNanoseconds(started_at, duration_ns) AS ended_at
    FROM selected
) AS x ON x.service_instance_id = m.service_instance_id AND x.graph_name = m.graph AND x.ended_at <= m.decided_at
ORDER BY abs(estimate_change_percent) DESC, service_instance_id, started_at, graph
LIMIT {limit:UInt64}
