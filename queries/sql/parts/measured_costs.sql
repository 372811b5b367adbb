-- part: What each candidate really costs in each cell asked for: measured in the cell itself, else in the nearest earlier cell of the same instance, else in the nearest later one. No row for a graph never seen to execute.
-- uses: selected, measured_in_cell
SELECT
    o.service_instance_id AS service_instance_id,
    o.cell AS cell,
    o.graph AS graph,
    if(earlier.graph_name != '', earlier.cell, later.cell) AS measured_in,
    if(earlier.graph_name != '', earlier.cost_ns, later.cost_ns) AS cost_ns,
    if(earlier.graph_name != '', earlier.cost_p90_ns, later.cost_p90_ns) AS cost_p90_ns,
    if(earlier.graph_name != '', earlier.gpu_time_median_ns, later.gpu_time_median_ns) AS gpu_time_median_ns
FROM
(
    SELECT service_instance_id, cell, min(started_at) AS asked_from, arrayJoin(groupUniqArrayArray(scheduler_candidate_graphs)) AS graph
    FROM selected
    GROUP BY service_instance_id, cell
) AS o
ASOF LEFT JOIN measured_in_cell AS earlier
    ON earlier.service_instance_id = o.service_instance_id AND earlier.graph_name = o.graph AND earlier.cell_started_at <= o.asked_from
ASOF LEFT JOIN measured_in_cell AS later
    ON later.service_instance_id = o.service_instance_id AND later.graph_name = o.graph AND later.cell_started_at > o.asked_from
WHERE measured_in != '' AND cost_ns > 0
