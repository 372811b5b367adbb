-- question: What did the scheduler believe of every graph it could choose, decision by decision?
-- uses: selected
-- parameter limit: UInt64 = 50000 | At most so many rows, earliest decisions first.
-- column service_instance_id [] | The engine instance.
-- column cell [] | The cell.
-- column graph_sequence [] | Submission number of the decision's execution.
-- column started_at [time] | Submission, just after the decision.
-- column graph_purpose [] | Why the chosen graph was executed.
-- column graph [] | A graph it could choose.
-- column chosen [] | It was the one executed.
-- column estimate_ns [ns] | What the scheduler charged it.
-- column expected_tokens [tokens] | What the scheduler expected of it.
-- column expected_tokens_per_s [tokens/s] | expected_tokens / estimate_ns: what an ordinary choice maximises.
-- table: cell, graph_sequence, started_at, graph, chosen, estimate_ns, expected_tokens, expected_tokens_per_s
-- example: tachograph query candidates --param cell=bench-r014 --format csv
SELECT
    service_instance_id,
    cell,
    graph_sequence,
    started_at,
    graph_purpose,
    graph,
    toBool(graph = graph_name) AS chosen,
    estimate_ns,
    expected_tokens,
    if(estimate_ns > 0, expected_tokens * 1e9 / estimate_ns, NULL) AS expected_tokens_per_s
FROM selected
ARRAY JOIN
    scheduler_candidate_graphs AS graph,
    scheduler_candidate_estimates_ns AS estimate_ns,
    scheduler_candidate_expected_tokens AS expected_tokens
WHERE length(scheduler_candidate_graphs) = length(scheduler_candidate_estimates_ns)
    AND length(scheduler_candidate_graphs) = length(scheduler_candidate_expected_tokens)
ORDER BY service_instance_id, started_at, graph_sequence, graph
LIMIT {limit:UInt64}
