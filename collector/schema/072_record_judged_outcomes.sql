-- Counts what becomes of each request's odd graph executions: a row beside that of record_outcomes.
CREATE MATERIALIZED VIEW IF NOT EXISTS record_judged_outcomes TO request_outcomes AS
SELECT
    request_id,
    any(received_at) AS received_at,
    countIf(refusal = '' AND is_own) AS stored,
    countIf(refusal = '' AND NOT is_own) AS deduplicated,
    sumMapIf(map(refusal, toUInt64(1)), refusal != '') AS refused,
    0 AS other_spans,
    countIf(refusal = '' AND is_own AND clock_trouble) AS clock_trouble
FROM judged_spans
GROUP BY request_id
