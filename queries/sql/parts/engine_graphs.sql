-- part: What each engine instance can execute: the graphs it ran as speculative and as anything else, and candidates that promised more than one token a lane.
-- uses: cells_nearby
SELECT
    service_instance_id,
    groupUniqArrayIf(graph_name, graph_kind = 'speculative') AS speculative_executed,
    groupUniqArrayIf(graph_name, graph_kind != 'speculative') AS other_executed,
    -- Plain decode promises one token a lane. A graph that promises more, of a kind never seen, can only be speculative.
    groupUniqArrayArray(promising_candidates) AS promising,
    arraySort(arrayConcat(
        speculative_executed,
        arrayFilter(graph -> NOT has(speculative_executed, graph) AND NOT has(other_executed, graph), promising)
    )) AS speculative_graphs,
    notEmpty(speculative_graphs) AS has_speculative
FROM cells_nearby
GROUP BY service_instance_id
