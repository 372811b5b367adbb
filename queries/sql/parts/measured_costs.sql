-- part: What each candidate really costs in each cell to be judged; by batch as well, for engines whose GPU times go with it, or of which nothing tells that they do not.
-- uses: plan, measured_in_cell
SELECT
    p.1 AS service_instance_id,
    p.2 AS cell,
    p.3 AS graph,
    p.4 AS measured_in,
    cost_ns,
    cost_p90_ns,
    gpu_time_median_ns,
    costs_by_lanes,
    costs_p90_by_lanes,
    max(batch_ratio) OVER (PARTITION BY p.1) NOT BETWEEN 1 AND 1.025 AS batches_matter
FROM (SELECT arrayJoin(plan.places) AS p) AS places
INNER JOIN measured_in_cell AS m ON m.service_instance_id = places.p.1 AND m.cell = places.p.4 AND m.graph_name = places.p.3
WHERE cost_ns > 0
