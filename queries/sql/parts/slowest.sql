-- row: The executions that took longest beyond the median wall time of their graph on their instance: rank, instance, submission number, excess in ns.
-- uses: selected
-- parameter slowest_count: UInt64 = 20 | So many slow executions.
SELECT arrayMap(
    (one, rank) -> (rank, one.2, one.3, -one.1),
    arraySort(groupArrayArray(slow)) AS found,
    arrayEnumerate(found)
)
FROM
(
    SELECT [(-excess_ns, service_instance_id, graph_sequence)] AS slow
    FROM
    (
        SELECT
            toString(service_instance_id) AS service_instance_id,
            graph_sequence,
            graph_wall_time_ns - median_ns AS excess_ns
        FROM selected
        INNER JOIN
        (
            SELECT service_instance_id, graph_name, quantileExactIf(0.5)(graph_wall_time_ns, NOT graph_after_idle) AS median_ns
            FROM selected
            GROUP BY service_instance_id, graph_name
        ) AS m USING (service_instance_id, graph_name)
        WHERE NOT graph_after_idle
        ORDER BY excess_ns DESC, service_instance_id, graph_sequence
        LIMIT {slowest_count:UInt64}
    )
)
