-- question: Which executions took longest beyond what their graph takes, and what ran beside them?
-- uses: selected, slowest
-- parameter neighbours: UInt64 = 2 | So many executions before and after each.
-- parameter limit: UInt64 = 1000 | At most so many rows: the slowest first, each with its neighbours in order.
-- column slow_rank [] | 1 for the slowest; its neighbours bear its rank.
-- column position [executions] | 0 is the slow one, -1 the execution before it, 1 the one after.
-- column service_instance_id [] | The engine instance.
-- column cell [] | The cell.
-- column host_name [] | Host.
-- column graph_sequence [] | Submission number.
-- column started_at [time] | Submission.
-- column graph_name [] | The graph.
-- column graph_purpose [] | Why it was executed.
-- column graph_gpu_time_ns [ns] | Time on the device.
-- column graph_wall_time_ns [ns] | GPU time + the device's idle gap before it.
-- column slow_excess_ns [ns] | Of the slow one: wall time - the median wall time of its graph on the instance.
-- column graph_queue_depth [submissions] | Submissions in flight at submission; 0 is drained.
-- column graph_after_idle [] | The engine had no work before. Such executions are no slow ones: their wall time is not the graph's.
-- column graph_completion_feedback_reason [] | Why the next one had to wait for it.
-- table: slow_rank, position, graph_sequence, started_at, graph_name, graph_gpu_time_ns, graph_wall_time_ns, slow_excess_ns, graph_queue_depth, graph_purpose, cell, host_name
-- example: tachograph query slow_executions --param cell=bench-r014 --param slowest_count=3
SELECT
    one.1 AS slow_rank,
    s.graph_sequence - one.3 AS position,
    s.service_instance_id AS service_instance_id,
    cell,
    host_name,
    s.graph_sequence AS graph_sequence,
    started_at,
    graph_name,
    graph_purpose,
    graph_gpu_time_ns,
    graph_wall_time_ns,
    if(position = 0, one.4, NULL) AS slow_excess_ns,
    graph_queue_depth,
    graph_after_idle,
    graph_completion_feedback_reason
FROM selected AS s
INNER JOIN
(
    SELECT arrayJoin(slowest) AS one, arrayJoin(range(2 * {neighbours:UInt64} + 1)) AS place
) AS n ON s.service_instance_id = n.one.2 AND s.graph_sequence = n.one.3 + toInt64(n.place) - toInt64({neighbours:UInt64})
WHERE s.service_instance_id IN (SELECT arrayJoin(slowest).2)
ORDER BY slow_rank, position
LIMIT {limit:UInt64}
