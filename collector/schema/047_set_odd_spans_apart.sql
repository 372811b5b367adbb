-- Hands on what needs a second look. Nothing odd, no block; and the views behind it are not even analysed.
CREATE MATERIALIZED VIEW IF NOT EXISTS set_odd_spans_apart TO odd_spans AS
SELECT
    request_id, received_at,
    service_instance_id, service_name, host_name, engine_name, engine_version, engine_package, engine_recipe,
    engine_tensor_parallel, gpu_ids, engine_attributes,
    odd_resource, span
FROM checked_spans
WHERE is_odd
