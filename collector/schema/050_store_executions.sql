-- Keeps the graph executions that hold to the contract.
CREATE MATERIALIZED VIEW IF NOT EXISTS store_executions TO graph_executions AS
SELECT * EXCEPT (request_id, is_graph_execution, refusal, clock_trouble)
FROM decoded_spans
WHERE is_graph_execution AND refusal = ''
