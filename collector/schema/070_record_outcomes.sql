-- Counts what becomes of each request's spans, the odd ones apart. ClickHouse commits the rows of several views in no
-- particular order: until an insert has succeeded, a request's outcome may be recorded and its executions not stored.
CREATE MATERIALIZED VIEW IF NOT EXISTS record_outcomes TO request_outcomes AS
SELECT
    request_id,
    any(received_at) AS received_at,
    countIf(is_graph_execution AND is_own) AS stored,
    countIf(is_graph_execution AND NOT is_own) AS deduplicated,
    CAST(map(), 'Map(String, UInt64)') AS refused,
    countIf(NOT is_graph_execution) AS other_spans,
    countIf(is_graph_execution AND is_own AND clock_trouble) AS clock_trouble
FROM checked_spans
WHERE NOT is_odd
GROUP BY request_id
