-- row: What has to be read to judge those of the unjudged cells that are stuck in plain decode or where an estimate may have been inflated or turned a decision: the windows, and where the costs of each cell's graphs are measured.
-- uses: judged_by_rollup, stuck_cells, unjudged_cells
-- parameter overcharge_above: Float64 = 0.1 | An estimate is inflated when it exceeds by more than this fraction what the graph cost at the 90th percentile of its GPU times.
-- parameter turned_above: Float64 = 0.01 | A decision counts as turned when measured costs make another graph better by more than this fraction and ...
-- parameter turned_overcharge_above: Float64 = 0.05 | ... and that graph was charged more than this fraction above that 90th percentile.
SELECT CAST((
    groupUniqArrayArray(arrayMap(one -> (toString(service_instance_id), one.1, one.2),
        arrayConcat(arrayMap(window -> (window, cell), own_windows), arrayFlatten(places.3)))),
    groupArrayArray(arrayMap(place -> (toString(service_instance_id), cell, place.1, place.2), places))
), 'Tuple(windows Array(Tuple(String, DateTime(\'UTC\'), String)), places Array(Tuple(String, String, String, String)))')
FROM judged_by_rollup
WHERE (service_instance_id, cell) IN (SELECT arrayJoin(unjudged_cells))
    AND ((service_instance_id, cell) IN (SELECT arrayJoin(stuck_cells))
        OR arrayMax(charged_ratios) > 1 + {overcharge_above:Float64}
        OR arrayExists((charged, level) -> charged > 1 + {turned_overcharge_above:Float64} AND level > 1 + {turned_above:Float64}, charged_ratios, level_ratios))
