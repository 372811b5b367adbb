-- Examines the cells between `from` and `to` whose verdict is final: which of them have anything about them for which
-- somebody might want their executions? Each bound is nearer than the one from which queries and findings speak of it, so
-- that the unsure are kept. The first reason counts. docs/sampling.md lists them.
-- Of every so many engines (parts) one (part), by a hash: memory goes with their executions.
-- Parameters: from, to, parts, part, settled_s, keeps_marked, share (of healthy cells kept whole, in 1/65536).
INSERT INTO cell_samples (received_on, service_instance_id, cell, first_started_at, last_started_at, executions, reason, examined_at)
WITH
final AS (
    SELECT
        service_instance_id,
        cell,
        min(first_started_at) AS cell_started_at,
        max(last_started_at) AS cell_last_started_at,
        max(last_ended_at) AS cell_ended_at,
        max(w.last_received_at) AS cell_received_at,
        max(cell_id) AS marked_as,
        sum(executions) AS stored,
        max(sequence_last) - min(w.sequence_first) + 1 != groupBitmapMerge(sequences) OR stored != groupBitmapMerge(sequences) AS has_gaps,
        sum(plain_wall_time_ns) AS plain_ns,
        sum(speculative_wall_time_ns) AS speculative_ns,
        max(w.judgement) AS latest
    FROM cell_windows AS w
    WHERE window_started_at >= subtractSeconds({from:DateTime64(9, 'UTC')}, 30) AND window_started_at <= {to:DateTime64(9, 'UTC')}
        AND sipHash64(service_instance_id) % {parts:UInt32} = {part:UInt32}
        AND (service_instance_id, cell) NOT IN (
            SELECT service_instance_id, cell FROM cell_samples
            WHERE first_started_at >= {from:DateTime64(9, 'UTC')} AND first_started_at <= {to:DateTime64(9, 'UTC')}
            GROUP BY service_instance_id, cell
            HAVING max(reason) != '' OR max(dropped_at) != toDateTime64(0, 3, 'UTC')
        )
    GROUP BY service_instance_id, cell
    HAVING stored > 0 AND latest.executions = stored
        -- What is healthy and still there is examined again when more has arrived.
        AND (service_instance_id, cell, stored) NOT IN (
            SELECT service_instance_id, cell, sum(counted)
            FROM
            (
                SELECT service_instance_id, cell, max(s.executions) AS counted FROM cell_samples AS s
                WHERE first_started_at >= {from:DateTime64(9, 'UTC')} AND first_started_at <= {to:DateTime64(9, 'UTC')}
                GROUP BY service_instance_id, cell, received_on
            )
            GROUP BY service_instance_id, cell
        )
        AND latest.judged_at >= addSeconds(cell_received_at, 600)
        AND latest.judged_at < subtractSeconds(now64(3, 'UTC'), {settled_s:UInt32})
        AND cell_started_at >= {from:DateTime64(9, 'UTC')} AND cell_last_started_at <= {to:DateTime64(9, 'UTC')}
),
-- With what came before them, as far back as findings look.
rounds AS (
    SELECT
        *,
        intDiv(started_ns, 5000000000) AS slice,
        graph_kind IN ('plain_decode', 'speculative') AS is_decoding,
        if(feedback_before AND ended_before_ns < started_ns, ended_before_ns, ended_before_that_ns) AS seen_ns,
        -- How long the host took to submit it, from when it could begin; and how long the device waited for it.
        if(graph_after_idle, 0, greatest(started_ns - greatest(started_before_ns, seen_ns), 0)) AS host_ns,
        if(graph_after_idle, 0, graph_wall_time_ns - graph_gpu_time_ns) AS waited_ns
    FROM
    (
        SELECT
            *,
            graph_sequence - lagInFrame(graph_sequence, 1, graph_sequence - 1) OVER engine AS step,
            lagInFrame(graph_completion_feedback) OVER engine AS feedback_before,
            lagInFrame(started_ns, 1, started_ns) OVER engine AS started_before_ns,
            lagInFrame(ended_ns, 1, started_ns) OVER engine AS ended_before_ns,
            lagInFrame(ended_ns, 2, started_ns) OVER engine AS ended_before_that_ns
        FROM
        (
            SELECT
                *, duration_ns, graph_gpu_time_ns, graph_wall_time_ns, graph_gpu_start_offset_ns, batch_tokens_accepted, cell AS of_cell,
                toUnixTimestamp64Nano(started_at) AS started_ns, started_ns + duration_ns AS ended_ns
            FROM graph_executions
            WHERE started_at >= subtractSeconds({from:DateTime64(9, 'UTC')}, 120) AND started_at <= {to:DateTime64(9, 'UTC')}
                AND service_instance_id IN (SELECT service_instance_id FROM final)
        )
        WINDOW engine AS (PARTITION BY service_instance_id ORDER BY started_ns, graph_sequence ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)
    )
),
told AS (
    SELECT
        service_instance_id,
        of_cell AS cell,
        toDate(received_at) AS received_on,
        count() AS there,
        min(started_at) AS first_at,
        max(started_at) AS last_at,
        countIf(graph_gpu_time_ns > graph_wall_time_ns OR ifNull(graph_gpu_start_offset_ns < 0, false)) AS clock_troubles,
        countIf(step != 1) AS gaps,
        max(waited_ns) AS waited_max_ns,
        maxIf(host_ns, NOT feedback_before) AS host_max_ns,
        sumIf(waited_ns, NOT feedback_before) / greatest(sum(graph_gpu_time_ns), 1) AS waited_fraction,
        countIf(is_decoding AND NOT feedback_before AND host_ns > graph_gpu_time_ns) AS late_rounds
    FROM rounds
    GROUP BY service_instance_id, of_cell, received_on
),
-- How far each graph's GPU time, and the acceptance of drafts, moved from one slice of 5 s to another.
slices AS (
    SELECT
        service_instance_id, slice, graph_name, is_decoding,
        groupUniqArray(of_cell) AS cells,
        count() AS executions,
        quantileExact(0.5)(graph_gpu_time_ns) AS median_ns,
        -- What five executions in a row all took at least, and at most: a graph that became slower may hardly be chosen again.
        if(countIf(in_row = 5) = 0, median_ns, maxIf(least_ns, in_row = 5)) AS risen_ns,
        if(countIf(in_row = 5) = 0, median_ns, minIf(most_ns, in_row = 5)) AS fallen_ns,
        sum(batch_tokens_drafted) AS drafted,
        ifNull(sum(batch_tokens_accepted) / nullIf(sum(batch_tokens_drafted), 0), 0) AS accepted,
        -- The one chance of every draft, once all before it in its lane were accepted, under which so many are: graphs of any
        -- depth can be compared by it, as findings do. 0 where it cannot be told.
        least(ifNull(sum(batch_tokens_drafted) / nullIf(sumIf(batch_lanes, batch_tokens_drafted > 0), 0), 0), 64) AS depth,
        arrayFold(
            (bounds, step) -> if(
                arraySum(place -> pow((bounds.1 + bounds.2) / 2, place) * least(depth - place + 1, 1), range(1, toUInt8(ceil(depth)) + 1)) < accepted * depth,
                ((bounds.1 + bounds.2) / 2, bounds.2),
                (bounds.1, (bounds.1 + bounds.2) / 2)
            ),
            range(12),
            (toFloat64(0), toFloat64(1))
        ).1 AS chance
    FROM
    (
        SELECT *, count() OVER five AS in_row, min(graph_gpu_time_ns) OVER five AS least_ns, max(graph_gpu_time_ns) OVER five AS most_ns
        FROM rounds
        WINDOW five AS (PARTITION BY service_instance_id, graph_name ORDER BY started_ns, graph_sequence ROWS BETWEEN 4 PRECEDING AND CURRENT ROW)
    )
    GROUP BY service_instance_id, slice, graph_name, is_decoding
),
moves AS (
    SELECT f.service_instance_id AS service_instance_id, f.cell AS cell, max(speed) AS speed_moved, max(five) AS five_moved, max(acceptance) AS acceptance_moved,
        ifNull(max(chance_most) - min(chance_least), 0) AS chance_moved
    FROM
    (
        SELECT
            f.service_instance_id AS service_instance_id, f.cell AS cell, s.graph_name AS graph,
            if(countIf(executions >= 5) < 2, 0, maxIf(median_ns, executions >= 5) / greatest(minIf(median_ns, executions >= 5), 1) - 1) AS speed,
            quantileExactWeighted(0.5)(median_ns, executions) AS ordinary_ns,
            if(sum(executions) < 10, 0, greatest(max(risen_ns) / greatest(ordinary_ns, 1), ordinary_ns / greatest(min(fallen_ns), 1)) - 1) AS five,
            if(countIf(drafted >= 500) < 2, 0, maxIf(accepted, drafted >= 500) - minIf(accepted, drafted >= 500)) AS acceptance,
            maxOrNullIf(chance, drafted >= 500) AS chance_most,
            minOrNullIf(chance, drafted >= 500) AS chance_least
        FROM final AS f
        INNER JOIN slices AS s ON s.service_instance_id = f.service_instance_id
        WHERE is_decoding
            AND s.slice * 5 >= toUnixTimestamp(f.cell_started_at) - 120 AND s.slice * 5 <= toUnixTimestamp(f.cell_last_started_at)
        GROUP BY service_instance_id, cell, graph
        -- Only graphs that the cell executed can have moved in it.
        HAVING countIf(has(s.cells, f.cell)) > 0
    ) AS f
    GROUP BY service_instance_id, cell
),
-- Whether an engine has a speculative graph to choose from, as verdicts have it.
speculating AS (
    SELECT
        service_instance_id,
        notEmpty(groupUniqArrayArray(speculative_graphs))
            OR notEmpty(arrayExcept(groupUniqArrayArray(promising_candidates), groupUniqArrayArray(graphs))) AS can_speculate
    FROM cell_windows
    WHERE window_started_at >= subtractSeconds({from:DateTime64(9, 'UTC')}, 630) AND window_started_at <= addSeconds({to:DateTime64(9, 'UTC')}, 600)
        AND sipHash64(service_instance_id) % {parts:UInt32} = {part:UInt32}
    GROUP BY service_instance_id
)
SELECT
    -- Of a cell whose executions are gone, to the store's bound or by retention, the rollups are there: found again and again, it
    -- would hold up others.
    if(there = 0, toDate(cell_received_at), t.received_on) AS received_on,
    f.service_instance_id AS service_instance_id,
    f.cell AS cell,
    f.cell_started_at AS first_started_at,
    f.cell_last_started_at AS last_started_at,
    t.there AS executions,
    multiIf(
        {keeps_marked:Bool} AND marked_as != '', 'marked',
        can_speculate AND plain_ns > 0.15 * (plain_ns + speculative_ns), 'stuck in plain',
        notEmpty(latest.inflation) OR latest.decisions_turned > 0, 'inflated or turned',
        has_gaps OR gaps > 0 OR sum(there) OVER cell != stored, 'executions lost',
        clock_troubles > 0 OR cell_ended_at > cell_received_at OR dateDiff('second', cell_ended_at, cell_received_at) > 60, 'clock trouble',
        waited_max_ns >= 3000000 OR host_max_ns >= 4000000 OR waited_fraction > 0.02 OR late_rounds > 0, 'late host',
        speed_moved > 0.025 OR five_moved > 0.02, 'GPU times moved',
        acceptance_moved > 0.06 OR chance_moved > 0.06, 'acceptance moved',
        sipHash64(service_instance_id, cell) % 65536 < {share:UInt32}, 'share',
        ''
    ) AS reason,
    now64(3, 'UTC') AS examined_at
FROM final AS f
LEFT JOIN told AS t ON t.service_instance_id = f.service_instance_id AND t.cell = f.cell
LEFT JOIN moves AS m ON m.service_instance_id = f.service_instance_id AND m.cell = f.cell
LEFT JOIN speculating AS s ON s.service_instance_id = f.service_instance_id
WINDOW cell AS (PARTITION BY f.service_instance_id, f.cell)
