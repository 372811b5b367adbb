-- question: What was executed, one row for each execution, in the order of submission?
-- uses: selected
-- parameter limit: UInt64 = 20000 | At most so many executions, earliest first.
-- column service_instance_id [] | The engine instance.
-- column cell [] | The cell.
-- column graph_sequence [] | Submission number in this engine run.
-- column started_at [time] | Submission.
-- column ended_at [time] | Observed completion.
-- column duration_ns [ns] | Submission to observed completion, the wait in the queue included.
-- column graph_name [] | The graph.
-- column graph_kind [] | What it computes.
-- column graph_purpose [] | Why it was executed.
-- column graph_gpu_time_ns [ns] | Time on the device.
-- column graph_wall_time_ns [ns] | GPU time + the device's idle gap before it.
-- column idle_gap_ns [ns] | graph_wall_time_ns - graph_gpu_time_ns.
-- column graph_gpu_start_offset_ns [ns] | Device start - submission.
-- column graph_queue_depth [submissions] | Submissions in flight at submission; 0 is drained.
-- column graph_after_idle [] | The engine had no work before.
-- column graph_completion_feedback [] | The next submission needed this one's results.
-- column graph_completion_feedback_reason [] | Why it did.
-- column batch_lanes [lanes] | Lanes in the batch.
-- column batch_tokens_drafted [tokens] | Draft tokens verified.
-- column batch_tokens_accepted [tokens] | Draft tokens accepted.
-- column batch_tokens_emitted [tokens] | Tokens emitted.
-- column scheduler_estimate_ns [ns] | What the scheduler charged the graph.
-- column scheduler_expected_tokens [tokens] | What it expected of it.
-- table: cell, graph_sequence, started_at, graph_name, graph_purpose, graph_gpu_time_ns, graph_wall_time_ns, graph_queue_depth, scheduler_estimate_ns, batch_tokens_emitted
-- example: tachograph query executions --param cell=bench-r014 --format csv
SELECT
    service_instance_id,
    cell,
    graph_sequence,
    started_at,
    addNanoseconds(started_at, duration_ns) AS ended_at,
    duration_ns,
    graph_name,
    graph_kind,
    graph_purpose,
    graph_gpu_time_ns,
    graph_wall_time_ns,
    graph_wall_time_ns - graph_gpu_time_ns AS idle_gap_ns,
    graph_gpu_start_offset_ns,
    graph_queue_depth,
    graph_after_idle,
    graph_completion_feedback,
    graph_completion_feedback_reason,
    batch_lanes,
    batch_tokens_drafted,
    batch_tokens_accepted,
    batch_tokens_emitted,
    scheduler_estimate_ns,
    scheduler_expected_tokens
FROM selected
ORDER BY service_instance_id, started_at, graph_sequence
LIMIT {limit:UInt64}
