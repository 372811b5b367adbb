-- part: What each engine instance can execute: the graphs it ran as speculative and as anything else, and candidates that promised more than a token a lane.
-- uses: nearby
SELECT
    service_instance_id,
    groupUniqArrayIf(graph_name, graph_kind = 'speculative') AS speculative_executed,
    groupUniqArrayIf(graph_name, graph_kind != 'speculative') AS other_executed,
    -- Plain decode promises one token a lane. A graph that promises more, of a kind never seen, can only be speculative.
    groupUniqArrayArray(arrayFilter(
        (graph, position) -> batch_lanes IS NULL
            OR empty(scheduler_candidate_expected_tokens)
            OR scheduler_candidate_expected_tokens[position] > assumeNotNull(batch_lanes),
        scheduler_candidate_graphs,
        arrayEnumerate(scheduler_candidate_graphs)
    )) AS promising_candidates,
    arraySort(arrayConcat(
        speculative_executed,
        arrayFilter(graph -> NOT has(speculative_executed, graph) AND NOT has(other_executed, graph), promising_candidates)
    )) AS speculative_graphs,
    notEmpty(speculative_graphs) AS has_speculative
FROM nearby
GROUP BY service_instance_id
