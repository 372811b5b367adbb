-- Settles the half hours between `from` and `to` that have ended and of whose engine cell_windows has other executions than the
-- latest settlement counts: each at most once in so many seconds. With them those that share a cell with them, as far as six
-- hours before and after: what such a cell has in each is kept apart, and it may have reached into no other before.
-- A half hour is written anew as a whole. A cell is plain as the query fleet_stretches has it by default; a test holds both together.
-- Parameters: from, to, every_s.
INSERT INTO engine_half_hours
(
    received_on, half_hour_started_at, service_instance_id, host_name, engine_package, engine_recipe, reaching_cell, settled_at,
    service_name, engine_name, engine_version, engine_tensor_parallel, gpu_ids, engine_attributes, cost_model_latest,
    first_started_at, last_started_at, last_ended_at, last_received_at, executions, arms,
    graphs, is_speculative, plain_graphs, promising_candidates, windows_started_at, arrival_delays_ms,
    cells_within, cells_started_at, cells_ended_at, cells_elapsed_ns, cells_executions, cells_tokens, cells_plain_ns, cells_speculative_ns,
    plain_cells, plain_cells_ns, worst_cell, worst_arm, worst_rank
)
WITH
(
    SELECT groupArray((toString(service_instance_id), half_hour))
    FROM
    (
        SELECT service_instance_id, half_hour
        FROM
        (
            SELECT
                service_instance_id, toStartOfInterval(window_started_at, INTERVAL 30 MINUTE) AS half_hour,
                sum(executions) AS stored, 0 AS counted, toDateTime64(0, 3, 'UTC') AS counted_at
            FROM cell_windows
            WHERE toStartOfInterval(window_started_at, INTERVAL 30 MINUTE) >= toStartOfInterval({from:DateTime64(9, 'UTC')}, INTERVAL 30 MINUTE)
                AND toStartOfInterval(window_started_at, INTERVAL 30 MINUTE) <= {to:DateTime64(9, 'UTC')}
                AND window_started_at < toStartOfInterval(now('UTC'), INTERVAL 30 MINUTE)
            GROUP BY service_instance_id, half_hour
            UNION ALL
            SELECT service_instance_id, half_hour_started_at, 0, h.executions, h.settled_at
            FROM engine_half_hours AS h FINAL
            WHERE half_hour_started_at >= toStartOfInterval({from:DateTime64(9, 'UTC')}, INTERVAL 30 MINUTE)
                AND half_hour_started_at <= {to:DateTime64(9, 'UTC')}
        )
        GROUP BY service_instance_id, half_hour
        HAVING sum(stored) != sum(counted) AND max(counted_at) <= subtractSeconds(now64(3, 'UTC'), {every_s:UInt32})
    )
) AS changed,
-- Cells that reach into another half hour, of the engines of those; and the half hours that one of them reaches into.
(
    SELECT CAST((
        groupArray((toString(service_instance_id), cell)),
        groupUniqArrayArrayIf(arrayMap(one -> (toString(service_instance_id), one), half_hours), is_touched)
    ), 'Tuple(cells Array(Tuple(String, String)), half_hours Array(Tuple(String, DateTime(\'UTC\'))))')
    FROM
    (
        SELECT
            service_instance_id, cell,
            groupUniqArray(toStartOfInterval(window_started_at, INTERVAL 30 MINUTE)) AS half_hours,
            max((service_instance_id, toStartOfInterval(window_started_at, INTERVAL 30 MINUTE)) IN (SELECT arrayJoin(changed))) AS is_touched
        FROM cell_windows
        WHERE window_started_at > subtractHours({from:DateTime64(9, 'UTC')}, 6)
            AND window_started_at < addHours(least({to:DateTime64(9, 'UTC')}, toDateTime64('2200-01-01', 9, 'UTC')), 6)
            AND service_instance_id IN (SELECT arrayJoin(changed.1))
            AND cell != toString(toUnixTimestamp(window_started_at))
        GROUP BY service_instance_id, cell
        HAVING length(half_hours) > 1
    )
) AS reaching
SELECT
    toDate(max(cell_received_at)) AS received_on,
    half_hour, service_instance_id, host_name, engine_package, engine_recipe, reaching_cell,
    now64(3, 'UTC') AS settled_at,
    max(c.service_name),
    max(c.engine_name),
    max(c.engine_version),
    max(c.engine_tensor_parallel),
    max(c.gpu_ids),
    max(c.engine_attributes),
    max(c.cost_model_latest),
    min(cell_started_at),
    max(cell_last_started_at),
    max(cell_ended_at),
    max(cell_received_at),
    if(reaching_cell = '', sum(cell_executions), 0),
    arraySort(arrayFilter(arm -> arm != '', groupUniqArrayArray(arms))),
    groupUniqArrayArray(c.graphs),
    max(c.is_speculative),
    groupUniqArrayArray(c.plain_graphs),
    groupUniqArrayArray(promising),
    -- Two cells may share a window: the later arrival and the later completion of both.
    (arraySort(arrayZip((maxMap(c.windows, received_ms) AS received).1, arrayMap((r, e) -> r - e, received.2, maxMap(c.windows, ended_ms).2))) AS delays).1,
    delays.2,
    countIf(is_within),
    minIf(cell_started_at, is_within OR reaching_cell != ''),
    maxIf(cell_ended_at, is_within OR reaching_cell != ''),
    sumIf(elapsed_ns, is_within OR reaching_cell != ''),
    sumIf(cell_executions, is_within OR reaching_cell != ''),
    sumIf(tokens, is_within OR reaching_cell != ''),
    sumIf(plain_ns, is_within OR reaching_cell != ''),
    sumIf(speculative_ns, is_within OR reaching_cell != ''),
    countIf(is_plain AND is_within),
    sumIf(plain_ns, is_plain AND is_within),
    argMaxIf(cell, rank, is_within OR reaching_cell != ''),
    argMaxIf(cell_arm, rank, is_within OR reaching_cell != ''),
    maxIf(rank, is_within OR reaching_cell != '')
FROM
(
    SELECT
        toStartOfInterval(window_started_at, INTERVAL 30 MINUTE) AS half_hour,
        service_instance_id, host_name, engine_package, engine_recipe, cell,
        any(w.cell_arm) AS cell_arm,
        groupUniqArray(toString(w.cell_arm)) AS arms,
        max(w.service_name) AS service_name,
        max(w.engine_name) AS engine_name,
        max(w.engine_version) AS engine_version,
        max(w.engine_tensor_parallel) AS engine_tensor_parallel,
        max(w.gpu_ids) AS gpu_ids,
        max(w.engine_attributes) AS engine_attributes,
        max(w.cost_model_latest) AS cost_model_latest,
        min(first_started_at) AS cell_started_at,
        max(w.last_started_at) AS cell_last_started_at,
        max(w.last_ended_at) AS cell_ended_at,
        max(w.last_received_at) AS cell_received_at,
        toUnixTimestamp64Nano(cell_ended_at) - toUnixTimestamp64Nano(cell_started_at) AS elapsed_ns,
        sum(w.executions) AS cell_executions,
        sum(tokens_emitted) AS tokens,
        sum(plain_wall_time_ns) AS plain_ns,
        sum(speculative_wall_time_ns) AS speculative_ns,
        plain_ns + speculative_ns >= 3e9 AND plain_ns > 0.3 * (plain_ns + speculative_ns) AS is_plain,
        -- Every cell that is plain ranks before every other.
        plain_ns + if(is_plain, toInt64(1e18), 0) AS rank,
        groupUniqArrayArray(w.graphs) AS graphs,
        max(notEmpty(speculative_graphs)) AS is_speculative,
        groupUniqArrayArrayIf(w.graphs, empty(speculative_graphs)) AS plain_graphs,
        groupUniqArrayArrayIf(w.promising_candidates, empty(speculative_graphs)) AS promising,
        groupArray(window_started_at) AS windows,
        groupArray(toUnixTimestamp64Milli(w.last_received_at)) AS received_ms,
        groupArray(toUnixTimestamp64Milli(w.last_ended_at)) AS ended_ms,
        (service_instance_id, cell) NOT IN (SELECT arrayJoin(reaching.cells)) AS is_within
    FROM cell_windows AS w
    WHERE window_started_at > subtractHours({from:DateTime64(9, 'UTC')}, 7)
        AND window_started_at < addHours(least({to:DateTime64(9, 'UTC')}, toDateTime64('2200-01-01', 9, 'UTC')), 7)
        AND (service_instance_id, toStartOfInterval(window_started_at, INTERVAL 30 MINUTE)) IN (SELECT arrayJoin(arrayConcat(changed, reaching.half_hours)))
    GROUP BY half_hour, service_instance_id, host_name, engine_package, engine_recipe, cell
) AS c
ARRAY JOIN if(is_within, [''], ['', cell]) AS reaching_cell
GROUP BY half_hour, service_instance_id, host_name, engine_package, engine_recipe, reaching_cell
