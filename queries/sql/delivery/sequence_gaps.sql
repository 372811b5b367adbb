-- question: Which executions were lost on the way here: how many, between which, and when?
-- uses: selected, gap_windows
-- parameter limit: UInt64 = 10000 | At most so many gaps, the latest first.
-- column service_instance_id [] | The engine instance.
-- column host_name [] | Host.
-- column sequence_before [] | The last submission stored before the gap.
-- column sequence_after [] | The first one after it.
-- column executions_missing [executions] | Submission numbers in between.
-- column gap_started_at [time] | Submission of the one before.
-- column gap_ended_at [time] | Submission of the one after.
-- column gap_s [s] | Time between the two.
-- table: host_name, service_instance_id, gap_started_at, gap_s, executions_missing, sequence_before, sequence_after
-- example: tachograph query sequence_gaps --param last_s=86400
SELECT
    service_instance_id,
    host_name,
    sequence_before,
    graph_sequence AS sequence_after,
    graph_sequence - sequence_before - 1 AS executions_missing,
    submitted_before_at AS gap_started_at,
    started_at AS gap_ended_at,
    (toUnixTimestamp64Nano(gap_ended_at) - toUnixTimestamp64Nano(gap_started_at)) / 1e9 AS gap_s
FROM
(
    SELECT
        service_instance_id,
        host_name,
        started_at,
        graph_sequence,
        lagInFrame(graph_sequence, 1, graph_sequence) OVER submissions AS sequence_before,
        lagInFrame(started_at, 1, started_at) OVER submissions AS submitted_before_at,
        one.3 AS place,
        lagInFrame(one.3, 1, one.3) OVER submissions AS place_before
    FROM selected AS s
    INNER JOIN (SELECT arrayJoin(gap_windows) AS one) AS w
        ON s.service_instance_id = one.1 AND toStartOfInterval(s.started_at, INTERVAL 30 SECOND) = one.2
    WHERE (service_instance_id, toStartOfInterval(started_at, INTERVAL 30 SECOND)) IN (SELECT one.1, one.2 FROM (SELECT arrayJoin(gap_windows) AS one))
    WINDOW submissions AS (PARTITION BY service_instance_id ORDER BY graph_sequence ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)
)
-- Between windows that are not neighbours lie others, without a gap.
WHERE graph_sequence > sequence_before + 1 AND abs(toInt64(place) - toInt64(place_before)) <= 1
ORDER BY gap_started_at DESC, service_instance_id, sequence_before
LIMIT {limit:UInt64}
