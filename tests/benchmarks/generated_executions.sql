-- Executions made up inside ClickHouse, the same for the same seed: a fleet whose engines each run cells of 30 s with 1,200
-- executions, spread evenly over the span_s before `until`. Every other engine marks its cells as a benchmark does.
-- In 4 cells of 100 the host stumbles, P128 is charged 34.5 ms for its 28.5, and plain decode wins for most of the cell.
-- Parameters: executions, engines, seed, span_s, until (UTC). Rows first_row .. first_row + executions of the whole fleet of fleet_executions.
INSERT INTO new_executions
(
    service_instance_id, started_at, duration_ns, received_at, trace_id, span_id,
    service_name, host_name, engine_name, engine_version, engine_package, engine_recipe, engine_tensor_parallel, gpu_ids, engine_attributes,
    graph_name, graph_kind, graph_purpose, graph_sequence, graph_gpu_time_ns, graph_wall_time_ns, graph_gpu_start_offset_ns,
    graph_gpu_time_source, graph_queue_depth, graph_after_idle, graph_completion_feedback, graph_completion_feedback_reason,
    batch_lanes, batch_tokens_drafted, batch_tokens_accepted, batch_tokens_emitted, batch_verification_budget,
    scheduler_cost_model, scheduler_estimate_ns, scheduler_estimate_gpu_ns, scheduler_estimate_handoff_ns, scheduler_expected_tokens,
    scheduler_candidate_graphs, scheduler_candidate_estimates_ns, scheduler_candidate_expected_tokens,
    cell_id, cell_arm, cell_position, cell_concurrency
)
WITH
    1200 AS cell_size,
    intDiv({fleet_executions:UInt64}, {engines:UInt64}) AS engine_size,
    greatest(intDiv(engine_size + cell_size - 1, cell_size), 1) AS engine_cells,
    greatest(intDiv({span_s:UInt64}, engine_cells), 30) AS cell_period_s,
    intDiv(number, engine_size) AS engine,
    number % engine_size AS sequence,
    intDiv(sequence, cell_size) AS cell_number,
    sequence % cell_size AS round,
    cityHash64({seed:UInt64}, number) AS noise,
    cityHash64({seed:UInt64}, engine, cell_number) % 100 < 4 AS is_fooled_cell,
    intDiv(noise, 1000) % 1000 AS draw,
    is_fooled_cell AND round BETWEEN 100 AND 1099 AS is_fooled,
    multiIf(draw < 20, 'prefill-2048', round % 400 = 399, 'P64', is_fooled OR draw < 100, 'decode', 'P128') AS graph,
    graph = 'prefill-2048' OR (graph = 'P128' AND draw < 150) AS feedback,
    is_fooled_cell AND round = 99 AS is_stumble,
    is_stumble OR feedback OR draw > 985 AS is_drained,
    transform(graph, ['decode', 'P64', 'P128'], [13300000, 24600000, 28500000], 12100000) AS gpu_median_ns,
    gpu_median_ns + intDiv(noise, 1000000) % 600000 - 300000 AS gpu_ns,
    multiIf(is_stumble, 32500000, is_drained, 400000 + intDiv(noise, 77) % 900000, 0) AS gap_ns,
    if(is_fooled, 34500000, 28900000 + intDiv(noise, 99) % 200000) AS p128_estimate_ns,
    toDateTime64({until:DateTime('UTC')}, 9, 'UTC') - toIntervalSecond({span_s:UInt64} - intDiv(cell_number * cell_period_s + engine * intDiv(cell_period_s, {engines:UInt64}), 30) * 30) AS cell_started_at,
    cell_started_at + toIntervalNanosecond(round * 25000000 + noise % 1000000) AS submitted_at
SELECT
    concat('engine-', toString(engine)), submitted_at, gpu_ns + gap_ns + if(is_drained, 0, 27000000), submitted_at + toIntervalMillisecond(2000),
    toFixedString(unhex(leftPad(hex(cityHash64(engine, cell_number)), 32, '0')), 16), toFixedString(unhex(leftPad(hex(number), 16, '0')), 8),
    'llm-engine', concat('gpu-node-', leftPad(toString(engine % 50), 3, '0')), 'generated', '1.0', if(engine % 2 = 0, 'main', 'next'), 'c32', 2,
    [concat('GPU-', toString(engine), '-0'), concat('GPU-', toString(engine), '-1')], map('all_reduce', if(engine % 4 < 2, 'nccl', 'custom')),
    graph, multiIf(graph = 'decode', 'plain_decode', graph = 'prefill-2048', 'prefill', 'speculative'),
    if(graph = 'P64', 'refresh', 'ordinary'), sequence, gpu_ns, gpu_ns + gap_ns, if(is_drained, 100000 + gap_ns, 27000000),
    'simulated', if(is_drained, 0, 1), round = 0, feedback, multiIf(graph = 'prefill-2048', 'prefill', feedback, 'grammar', ''),
    if(graph = 'prefill-2048', 1, 32), if(graph = 'P128', 96, 0), if(graph = 'P128', 30 + noise % 25, 0),
    multiIf(graph = 'decode', 32, graph = 'P128', 62 + toInt64(noise % 25), graph = 'P64', 52, 0), if(graph = 'P128', 128, NULL),
    if(engine % 2 = 0, 'exposed_mean', 'drained_share'), if(graph = 'P128', p128_estimate_ns, gpu_median_ns), gpu_median_ns, 0,
    transform(graph, ['decode', 'P64', 'P128'], [32., 52., 75.7], 0.),
    if(graph = 'prefill-2048', [], ['decode', 'P64', 'P128']),
    if(graph = 'prefill-2048', [], [13300000, 24600000, toInt64(p128_estimate_ns)]),
    if(graph = 'prefill-2048', [], [32., 52., 75.7]),
    if(engine % 2 = 0, '', concat('bench-', toString(engine), '-', toString(cell_number))), if(engine % 2 = 0, '', if(cell_number % 2 = 0, 'before', 'after')),
    if(engine % 2 = 0, NULL, cell_number), if(engine % 2 = 0, NULL, 32)
FROM numbers({first_row:UInt64}, {executions:UInt64})
