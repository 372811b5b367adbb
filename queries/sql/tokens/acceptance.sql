-- question: How many draft tokens are accepted, by graph and number of lanes, and do the scheduler's expectations hold?
-- uses: selected
-- parameter limit: UInt64 = 10000 | At most so many rows.
-- column host_name [] | Host.
-- column engine_package [] | Build under test.
-- column graph_name [] | The graph.
-- column batch_lanes [lanes] | Lanes in the batch; empty where it was not recorded.
-- column executions [executions] | Executions that verified drafts, all purposes.
-- column executions_all_rejected [executions] | Those that accepted none: they count in every figure here.
-- column batch_tokens_drafted [tokens] | Draft tokens verified.
-- column batch_tokens_accepted [tokens] | Draft tokens accepted.
-- column acceptance_fraction [fraction] | batch_tokens_accepted / batch_tokens_drafted.
-- column tokens_per_execution [tokens] | Mean tokens emitted.
-- column expected_per_execution [tokens] | Mean tokens that the scheduler expected of them; empty where it recorded none.
-- column emitted_to_expected [ratio] | Tokens emitted / tokens expected, over the executions with an expectation.
-- table: host_name, engine_package, graph_name, batch_lanes, executions, acceptance_fraction, tokens_per_execution, expected_per_execution, emitted_to_expected, executions_all_rejected
-- example: tachograph query acceptance --param cell=bench-r001
SELECT
    host_name,
    engine_package,
    graph_name,
    s.batch_lanes AS batch_lanes,
    count() AS executions,
    countIf(s.batch_tokens_accepted = 0) AS executions_all_rejected,
    sum(s.batch_tokens_drafted) AS batch_tokens_drafted,
    sum(s.batch_tokens_accepted) AS batch_tokens_accepted,
    sumIf(s.batch_tokens_accepted, s.batch_tokens_accepted IS NOT NULL) / sumIf(s.batch_tokens_drafted, s.batch_tokens_accepted IS NOT NULL) AS acceptance_fraction,
    avg(batch_tokens_emitted) AS tokens_per_execution,
    avg(scheduler_expected_tokens) AS expected_per_execution,
    sumIf(batch_tokens_emitted, scheduler_expected_tokens IS NOT NULL) / sumIf(scheduler_expected_tokens, batch_tokens_emitted IS NOT NULL) AS emitted_to_expected
FROM selected AS s
WHERE s.batch_tokens_drafted > 0
GROUP BY host_name, engine_package, graph_name, batch_lanes
ORDER BY host_name, engine_package, graph_name, batch_lanes
LIMIT {limit:UInt64}
