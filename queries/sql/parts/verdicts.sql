-- part: Each cell asked for, with its figures and the verdicts stuck and inflated.
-- uses: cell_figures, inflation_by_cell
-- parameter inflated_above_s: Float64 = 1 | A cell is inflated when inflated estimates turned decisions for at least this long, in s.
SELECT
    f.*,
    i.turned_s AS turned_s,
    i.decisions_turned AS decisions_turned,
    toBool(turned_s >= {inflated_above_s:Float64}) AS inflated
FROM cell_figures AS f
LEFT JOIN inflation_by_cell AS i ON i.service_instance_id = f.service_instance_id AND i.cell = f.cell
