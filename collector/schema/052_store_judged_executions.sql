-- Keeps those of the odd graph executions that hold to the contract after all and are not stored yet.
CREATE MATERIALIZED VIEW IF NOT EXISTS store_judged_executions TO new_executions AS
SELECT * EXCEPT (request_id, refusal, clock_trouble, is_new, is_own)
FROM judged_spans
WHERE refusal = '' AND is_new
