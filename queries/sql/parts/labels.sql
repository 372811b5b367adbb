-- part: What each cell asked for says of itself.
-- uses: selected
SELECT
    service_instance_id,
    cell,
    any(host_name) AS host_name,
    any(engine_name) AS engine_name,
    any(engine_package) AS engine_package,
    any(engine_recipe) AS engine_recipe,
    argMaxIf(scheduler_cost_model, started_at, scheduler_cost_model != '') AS scheduler_cost_model
FROM selected
GROUP BY service_instance_id, cell
