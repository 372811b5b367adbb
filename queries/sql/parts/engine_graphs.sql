-- part: What each engine instance can execute: the graphs it ran as speculative and as anything else, and candidates that promised more than one token a lane.
-- uses: windows_nearby
SELECT
    service_instance_id,
    groupUniqArrayArray(w.graphs) AS executed,
    groupUniqArrayArray(w.speculative_graphs) AS speculative_executed,
    -- Plain decode promises one token a lane. A graph that promises more, and was never executed, can only be speculative.
    arraySort(arrayConcat(speculative_executed, arrayExcept(groupUniqArrayArray(promising_candidates), executed))) AS speculative_graphs,
    notEmpty(speculative_graphs) AS has_speculative
FROM windows_nearby AS w
GROUP BY service_instance_id
