-- row: What has to be read to judge the cells stuck in plain decode and those where an estimate may have turned a decision: the windows, and where the costs of each cell's graphs are measured.
-- uses: judged_by_rollup, stuck_cells
-- parameter turned_above: Float64 = 0.01 | A decision counts as turned when measured costs make another graph better by more than this fraction and ...
-- parameter turned_overcharge_above: Float64 = 0.05 | ... and that graph was charged more than this fraction above that 90th percentile.
SELECT CAST((
    groupUniqArrayArray(arrayMap(one -> (toString(service_instance_id), one.1, one.2),
        arrayConcat(arrayMap(window -> (window, cell), own_windows), arrayFlatten(places.3)))),
    groupArrayArray(arrayMap(place -> (toString(service_instance_id), cell, place.1, place.2), places))
), 'Tuple(windows Array(Tuple(String, DateTime(\'UTC\'), String)), places Array(Tuple(String, String, String, String)))')
FROM judged_by_rollup
WHERE (service_instance_id, cell) IN (SELECT arrayJoin(stuck_cells))
    OR arrayExists((charged, level) -> charged > 1 + {turned_overcharge_above:Float64} AND level > 1 + {turned_above:Float64}, charged_ratios, level_ratios)
