-- part: What each cell asked for says of itself.
-- uses: cells_nearby
SELECT
    service_instance_id,
    cell,
    any(host_name) AS host_name,
    any(engine_name) AS engine_name,
    any(engine_package) AS engine_package,
    any(engine_recipe) AS engine_recipe,
    max(cost_model_latest).2 AS scheduler_cost_model
FROM cells_nearby
GROUP BY service_instance_id, cell
