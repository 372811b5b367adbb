-- Decodes OTLP: spans to typed columns, each right where the span keeps the contract. What may not keep it is only
-- marked here (check_spans marks the rest), and looked at again by judge_odd_spans, whose analysis takes longer than
-- all of this and is done only when something is odd.
--
-- A value's type is told by which of its four scalars are null, as bits: 14 leaves a string, 13 a boolean, 11 an
-- integer, 7 a double, 15 none of them, as an array or nothing has it. 0 marks attributes that the contract does not name.
--
-- ClickHouse analyses a view again at every insert. So expressions are few and refer to columns of the level below, not
-- to one another: docs/decisions/0009-two-looks-at-a-span.md. A resource is decoded once, not once for each of its spans.
CREATE MATERIALIZED VIEW IF NOT EXISTS decode_otlp TO decoded_spans AS
SELECT
    request_id,
    span.name = 'execute_graph' OR startsWith(span.name, 'execute_graph ') AS is_graph_execution,
    arrayAll((wanted, text, truth, whole, real) -> bitOr(wanted = 0, wanted = text + 2 * truth + 4 * whole + 8 * real),
        arrayMap(key -> transform(key, [
            'graph.name', 'graph.kind', 'graph.purpose', 'graph.gpu_time_source', 'graph.completion_feedback_reason',
            'scheduler.cost_model', 'cell.id', 'cell.arm',
            'graph.after_idle', 'graph.completion_feedback',
            'graph.sequence', 'graph.gpu_time_ns', 'graph.wall_time_ns', 'graph.gpu_start_offset_ns',
            'graph.queue_depth', 'batch.lanes', 'batch.tokens_drafted', 'batch.tokens_accepted',
            'batch.tokens_emitted', 'batch.verification_budget', 'scheduler.estimate_ns',
            'scheduler.estimate_gpu_ns', 'scheduler.estimate_handoff_ns', 'cell.position', 'cell.concurrency',
            'scheduler.expected_tokens',
            'scheduler.candidate_graphs', 'scheduler.candidate_estimates_ns', 'scheduler.candidate_expected_tokens'],
            [14, 14, 14, 14, 14, 14, 14, 14, 13, 13, 11, 11, 11, 11, 11, 11, 11, 11, 11, 11, 11, 11, 11, 11, 11, 7, 15, 15, 15],
            0), keys),
        strings.null, booleans.null, integers.null, reals.null)
        AND NOT has(given_graphs, NULL) AND NOT has(given_tokens, NULL) AS is_well_typed,
    fromUnixTimestamp64Nano(toInt64(span.start_time_unix_nano), 'UTC') AS started_at,
    toInt64(span.end_time_unix_nano - span.start_time_unix_nano) AS duration_ns,
    received_at,
    toFixedString(substring(span.trace_id, 1, 16), 16) AS trace_id,
    toFixedString(substring(span.span_id, 1, 8), 8) AS span_id,
    service_instance_id, service_name, host_name, engine_name, engine_version, engine_package, engine_recipe,
    engine_tensor_parallel, gpu_ids, engine_attributes,
    ifNull(strings[indexOf(keys, 'graph.name')], '') AS graph_name,
    ifNull(strings[indexOf(keys, 'graph.kind')], '') AS graph_kind,
    ifNull(strings[indexOf(keys, 'graph.purpose')], 'ordinary') AS graph_purpose,
    ifNull(integers[indexOf(keys, 'graph.sequence')], -1) AS graph_sequence,
    ifNull(integers[indexOf(keys, 'graph.gpu_time_ns')], -1) AS graph_gpu_time_ns,
    ifNull(integers[indexOf(keys, 'graph.wall_time_ns')], -1) AS graph_wall_time_ns,
    integers[indexOf(keys, 'graph.gpu_start_offset_ns')] AS graph_gpu_start_offset_ns,
    ifNull(strings[indexOf(keys, 'graph.gpu_time_source')], '') AS graph_gpu_time_source,
    integers[indexOf(keys, 'graph.queue_depth')] AS graph_queue_depth,
    ifNull(booleans[indexOf(keys, 'graph.after_idle')], false) AS graph_after_idle,
    ifNull(booleans[indexOf(keys, 'graph.completion_feedback')], false) AS graph_completion_feedback,
    ifNull(strings[indexOf(keys, 'graph.completion_feedback_reason')], '') AS graph_completion_feedback_reason,
    integers[indexOf(keys, 'batch.lanes')] AS batch_lanes,
    integers[indexOf(keys, 'batch.tokens_drafted')] AS batch_tokens_drafted,
    integers[indexOf(keys, 'batch.tokens_accepted')] AS batch_tokens_accepted,
    integers[indexOf(keys, 'batch.tokens_emitted')] AS batch_tokens_emitted,
    integers[indexOf(keys, 'batch.verification_budget')] AS batch_verification_budget,
    ifNull(strings[indexOf(keys, 'scheduler.cost_model')], '') AS scheduler_cost_model,
    integers[indexOf(keys, 'scheduler.estimate_ns')] AS scheduler_estimate_ns,
    integers[indexOf(keys, 'scheduler.estimate_gpu_ns')] AS scheduler_estimate_gpu_ns,
    integers[indexOf(keys, 'scheduler.estimate_handoff_ns')] AS scheduler_estimate_handoff_ns,
    reals[indexOf(keys, 'scheduler.expected_tokens')] AS scheduler_expected_tokens,
    arrayMap(x -> ifNull(x, ''), given_graphs) AS scheduler_candidate_graphs,
    arrayMap(x -> ifNull(x, -1), given_estimates) AS scheduler_candidate_estimates_ns,
    arrayMap(x -> ifNull(x, 0), given_tokens) AS scheduler_candidate_expected_tokens,
    ifNull(strings[indexOf(keys, 'cell.id')], '') AS cell_id,
    ifNull(strings[indexOf(keys, 'cell.arm')], '') AS cell_arm,
    integers[indexOf(keys, 'cell.position')] AS cell_position,
    integers[indexOf(keys, 'cell.concurrency')] AS cell_concurrency,
    graph_gpu_time_ns > graph_wall_time_ns OR ifNull(graph_gpu_start_offset_ns < 0, false) AS clock_trouble,
    odd_resource,
    span
FROM
(
    SELECT
        request_id, received_at, span,
        service_instance_id, service_name, host_name, engine_name, engine_version, engine_package, engine_recipe,
        engine_tensor_parallel, gpu_ids, engine_attributes, odd_resource,
        span.attributes.key AS keys,
        span.attributes.value.string_value AS strings,
        span.attributes.value.bool_value AS booleans,
        span.attributes.value.double_value AS reals,
        span.attributes.value.int_value AS integers,
        span.attributes.value.array_value.values.string_value[indexOf(keys, 'scheduler.candidate_graphs')] AS given_graphs,
        span.attributes.value.array_value.values.int_value[indexOf(keys, 'scheduler.candidate_estimates_ns')] AS given_estimates,
        span.attributes.value.array_value.values.double_value[indexOf(keys, 'scheduler.candidate_expected_tokens')] AS given_tokens
    FROM
    (
        SELECT
            request_id, fromUnixTimestamp64Milli(toInt64(received_unix_ms), 'UTC') AS received_at,
            arrayJoin(arrayFlatten(scope_spans.spans)) AS span,
            toLowCardinality(ifNull(strings[indexOf(keys, 'service.instance.id')], '')) AS service_instance_id,
            toLowCardinality(ifNull(strings[indexOf(keys, 'service.name')], '')) AS service_name,
            toLowCardinality(ifNull(strings[indexOf(keys, 'host.name')], '')) AS host_name,
            toLowCardinality(ifNull(strings[indexOf(keys, 'engine.name')], '')) AS engine_name,
            toLowCardinality(ifNull(strings[indexOf(keys, 'engine.version')], '')) AS engine_version,
            toLowCardinality(ifNull(strings[indexOf(keys, 'engine.package')], '')) AS engine_package,
            toLowCardinality(ifNull(strings[indexOf(keys, 'engine.recipe')], '')) AS engine_recipe,
            integers[indexOf(keys, 'engine.tensor_parallel')] AS engine_tensor_parallel,
            arrays[indexOf(keys, 'gpu.ids')].string_value AS given_gpu_ids,
            arrayMap(x -> ifNull(x, ''), given_gpu_ids) AS gpu_ids,
            arrayMap(item -> (substring(item.1, 8), ifNull(item.2, '')), arrayFilter(
                item -> isNotNull(item.2) AND startsWith(item.1, 'engine.')
                    AND item.1 NOT IN ('engine.name', 'engine.version', 'engine.package', 'engine.recipe', 'engine.tensor_parallel'),
                arrayZip(attributes.key, arrayMap((text, whole, real, truth) -> coalesce(text, toString(whole), toString(real), toString(truth)),
                    strings, attributes.value.int_value, reals, booleans))))::Map(String, String) AS engine_attributes,
            if(has(keys, 'service.instance.id') AND NOT has(given_gpu_ids, NULL)
                AND isValidUTF8(arrayStringConcat(arrayConcat(keys, arrayMap(x -> ifNull(x, ''), strings), gpu_ids), '\n'))
                AND arrayAll((wanted, text, truth, whole, real) -> bitOr(wanted = 0, wanted = text + 2 * truth + 4 * whole + 8 * real),
                    arrayMap(key -> transform(key, [
                        'service.instance.id', 'service.name', 'host.name', 'engine.name', 'engine.version',
                        'engine.package', 'engine.recipe', 'engine.tensor_parallel', 'gpu.ids'],
                        [14, 14, 14, 14, 14, 14, 14, 11, 15], 0), keys),
                    strings.null, booleans.null, attributes.value.int_value.null, reals.null),
                [], attributes) AS odd_resource
        FROM
        (
            SELECT
                request_id, received_unix_ms, resource.scope_spans AS scope_spans,
                resource.resource.attributes AS attributes,
                attributes.value.string_value AS strings,
                attributes.value.bool_value AS booleans,
                attributes.value.double_value AS reals,
                arrayMap((whole, real) -> ifNull(whole, accurateCastOrNull(real, 'Int64')), attributes.value.int_value, reals) AS integers,
                attributes.value.array_value.values AS arrays,
                arrayMap((key, nth, text, truth, real, whole, list) -> if(
                    nth > 1 OR text = '' OR (isNull(text) AND isNull(truth) AND isNull(real) AND isNull(whole) AND empty(list)), '', key),
                    attributes.key, arrayEnumerateUniq(attributes.key), strings, booleans, reals, attributes.value.int_value, arrays) AS keys
            FROM (SELECT request_id, received_unix_ms, arrayJoin(resource_spans) AS resource FROM otlp_requests)
        )
    )
)
