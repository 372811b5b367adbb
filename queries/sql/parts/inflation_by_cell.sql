-- part: What inflated estimates did to each cell.
-- uses: decisions
SELECT
    service_instance_id,
    cell,
    countIf(turned) AS decisions_turned,
    sumIf(graph_wall_time_ns, turned) / 1e9 AS turned_s,
    sumIf((rates[best] - rates[chosen]) * graph_wall_time_ns, turned) AS tokens_lost
FROM decisions
GROUP BY service_instance_id, cell
