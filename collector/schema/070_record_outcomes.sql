-- Counts what becomes of each request's spans. Created after store_executions, so that it runs after it: a request
-- is never recorded as stored before it is.
CREATE MATERIALIZED VIEW IF NOT EXISTS record_outcomes TO request_outcomes AS
SELECT
    request_id,
    any(received_at) AS received_at,
    countIf(is_graph_execution AND refusal = '') AS stored,
    toUInt64(0) AS deduplicated,
    sumMapIf(map(refusal, toUInt64(1)), is_graph_execution AND refusal != '') AS refused,
    countIf(NOT is_graph_execution) AS other_spans,
    countIf(is_graph_execution AND refusal = '' AND clock_trouble) AS clock_trouble
FROM decoded_spans
GROUP BY request_id
