-- question: Which executions moved an estimate, from what to what?
-- uses: selected, at_once_engines
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
-- column moved_by_sequence [] | Submission number of the graph's latest execution that this decision knew and the one before did not: what moved the estimate. At one and the same instant it was known if its results were needed, if it would else count as in flight, or if the engine's charges move as if it were. Empty where there is none: the estimate expired, or another rule moved it.
-- column moved_by_purpose [] | Why that one was executed.
-- column moved_by_gpu_time_ns [ns] | Its GPU time.
-- column moved_by_wall_time_ns [ns] | Its wall time.
-- column moved_by_queue_depth [submissions] | Submissions in flight when it was submitted.
-- column moved_by_span_id [] | Its span, in hex.
-- table: graph, estimate_before_ns, estimate_after_ns, moved_by_sequence, moved_by_gpu_time_ns, moved_by_wall_time_ns, moved_by_queue_depth, started_at, cell, host_name, moved_by_purpose, estimate_change_percent
-- example: tachograph query estimate_moves --param cell=bench-r014
SELECT
    service_instance_id,
    cell,
    host_name,
    decided_at AS started_at,
    graph_sequence,
    graph,
    estimate_before_ns,
    estimate_after_ns,
    100 * (estimate_after_ns / estimate_before_ns - 1) AS estimate_change_percent,
    if(is_new, execution.graph_sequence, NULL) AS moved_by_sequence,
    if(is_new, toString(execution.graph_purpose), '') AS moved_by_purpose,
    if(is_new, execution.graph_gpu_time_ns, NULL) AS moved_by_gpu_time_ns,
    if(is_new, execution.graph_wall_time_ns, NULL) AS moved_by_wall_time_ns,
    if(is_new, execution.graph_queue_depth, NULL) AS moved_by_queue_depth,
    if(is_new, lower(hex(execution.span_id)), '') AS moved_by_span_id
FROM
(
    -- As `queries.known_by_then` has it: whether a decision knew of an execution.
    WITH (at, sequence, depth, observed_at, one) -> observed_at < at OR observed_at = at AND multiIf(
        one.graph_sequence >= sequence, false,
        one.graph_completion_feedback, true,
        ifNull(depth, 0) > 0, sequence - one.graph_sequence > depth,
        at_once) AS knows
    SELECT
        *,
        knows(decided_at, graph_sequence, queue_depth, last_ended_at, last) AS is_last_known,
        if(is_last_known, last, earlier) AS execution,
        if(is_last_known, last_ended_at, earlier_ended_at) AS ended_at,
        execution.graph_name = graph AND NOT knows(decided_before_at, sequence_before, queue_depth_before, ended_at, execution) AS is_new
    FROM
    (
        SELECT
            m.*,
            x.ended_at AS last_ended_at,
            x.execution AS last,
            x.earlier_ended_at AS earlier_ended_at,
            x.earlier AS earlier,
            -- What was observed before this decision's instant, and what up to it, since the decision before.
            if(last_ended_at = decided_at, earlier.graph_name = graph AND earlier_ended_at >= decided_before_at, last.graph_name = graph AND last_ended_at >= decided_before_at) AS is_before,
            last.graph_name = graph AND last_ended_at > decided_before_at AS is_at,
            is_whole * (toInt8(is_at) - toInt8(is_before)) AS only_vote,
            if(is_whole AND is_at AND is_before AND last_ended_at = decided_at,
                sign(estimate_after_ns - estimate_before_ns) * sign(last.graph_wall_time_ns - earlier.graph_wall_time_ns), 0) AS larger_vote,
            sum(only_vote) OVER engine AS only_votes,
            may_be_at_once
                AND (only_votes > 0 OR only_votes = 0 AND sum(larger_vote) OVER engine > 3 * sqrt(sum(abs(larger_vote)) OVER engine)) AS at_once
        FROM
        (
            SELECT
                service_instance_id, cell, host_name, decided_at, decided_before_at, graph_sequence, sequence_before, queue_depth, queue_depth_before,
                is_whole, graph, estimate_after_ns,
                service_instance_id IN (SELECT service_instance_id FROM at_once_engines) AS may_be_at_once,
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
                    graph_queue_depth AS queue_depth,
                    is_whole,
                    scheduler_candidate_graphs AS graphs,
                    scheduler_candidate_estimates_ns AS estimates_ns,
                    lagInFrame(started_at) OVER decisions AS decided_before_at,
                    lagInFrame(graph_sequence) OVER decisions AS sequence_before,
                    lagInFrame(graph_queue_depth) OVER decisions AS queue_depth_before,
                    lagInFrame(scheduler_candidate_graphs) OVER decisions AS graphs_before,
                    lagInFrame(scheduler_candidate_estimates_ns) OVER decisions AS estimates_before
                FROM
                (
                    SELECT
                        service_instance_id, cell, host_name, started_at, graph_sequence, graph_queue_depth,
                        scheduler_candidate_graphs, scheduler_candidate_estimates_ns,
                        -- What was lost may have moved an estimate: such a decision has no vote.
                        count() OVER submissions = 5 AND graph_sequence - first_value(graph_sequence) OVER submissions = 4 AS is_whole
                    FROM selected
                    WINDOW submissions AS (PARTITION BY service_instance_id ORDER BY started_at, graph_sequence ROWS BETWEEN 4 PRECEDING AND CURRENT ROW)
                )
                WHERE notEmpty(scheduler_candidate_graphs) AND length(scheduler_candidate_graphs) = length(scheduler_candidate_estimates_ns)
                WINDOW decisions AS (PARTITION BY service_instance_id ORDER BY started_at, graph_sequence ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)
            )
            ARRAY JOIN graphs AS graph, estimates_ns AS estimate_after_ns
            WHERE estimates_ns != estimates_before
                AND same_graph != ''
                AND estimate_before_ns > 0
                AND estimate_after_ns != estimate_before_ns
                -- Of an engine that may take one timestamp every change has a vote.
                AND (abs(estimate_after_ns / estimate_before_ns - 1) > {moved_above:Float64} OR may_be_at_once)
        ) AS m
        ASOF LEFT JOIN
        (
            SELECT
                service_instance_id,
                graph_name,
                addNanoseconds(started_at, duration_ns) AS ended_at,
                tuple(graph_name, graph_sequence, graph_purpose, graph_gpu_time_ns, graph_wall_time_ns, graph_queue_depth, graph_completion_feedback, span_id)
                    ::Tuple(graph_name String, graph_sequence Int64, graph_purpose String, graph_gpu_time_ns Int64, graph_wall_time_ns Int64, graph_queue_depth Nullable(Int64), graph_completion_feedback Bool, span_id FixedString(8)) AS execution,
                lagInFrame(ended_at) OVER of_graph AS earlier_ended_at,
                lagInFrame(execution) OVER of_graph AS earlier
            FROM selected
            WINDOW of_graph AS (PARTITION BY service_instance_id, graph_name ORDER BY ended_at, graph_sequence ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)
        ) AS x ON x.service_instance_id = m.service_instance_id AND x.graph_name = m.graph AND x.ended_at <= m.decided_at
        WINDOW engine AS (PARTITION BY m.service_instance_id)
    )
)
WHERE abs(estimate_after_ns / estimate_before_ns - 1) > {moved_above:Float64}
    AND ({graph:String} = '' OR graph = {graph:String})
ORDER BY abs(estimate_change_percent) DESC, service_instance_id, started_at, graph
LIMIT {limit:UInt64}
