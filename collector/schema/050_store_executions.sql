-- Keeps the graph executions that hold to the contract and are not stored yet.
CREATE MATERIALIZED VIEW IF NOT EXISTS store_executions TO new_executions AS
SELECT * EXCEPT (request_id, is_graph_execution, clock_trouble, is_odd, is_new, is_own, odd_resource, span)
FROM checked_spans
WHERE is_graph_execution AND NOT is_odd AND is_new
