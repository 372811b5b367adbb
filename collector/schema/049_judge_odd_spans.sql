-- The second look, at what may break the contract: gives each the first reason to refuse it, in the order of the
-- contract's list of reasons, or ''. A value of another type than the contract's is NULL in the array of that type, and so
-- is told from one that is missing. An integral double passes for an integer: JavaScript has no other numbers.
-- Null, '' and [] count as not sent: their key is blanked. Of an attribute given twice the first counts, whatever it is: the
-- key of the others is blanked as well.
--
-- A long statement, in which every rule is written out: it is analysed only when something is odd.
CREATE MATERIALIZED VIEW IF NOT EXISTS judge_odd_spans TO judged_spans AS
WITH
    row_number() OVER (PARTITION BY refusal = '', service_instance_id, started_at, span_id) = 1 AS is_first,
    (service_instance_id, started_at, span_id) IN (
        SELECT service_instance_id, started_at, span_id FROM graph_executions
        WHERE (service_instance_id, started_at) IN (
            SELECT service_instance_id, fromUnixTimestamp64Nano(toInt64(span.start_time_unix_nano), 'UTC') FROM odd_spans)
    ) AS is_stored,
    -- The same arrival: by an earlier attempt to store this request, which failed half-way.
    (service_instance_id, started_at, span_id, received_at) IN (
        SELECT service_instance_id, started_at, span_id, received_at FROM graph_executions
        WHERE (service_instance_id, started_at) IN (
            SELECT service_instance_id, fromUnixTimestamp64Nano(toInt64(span.start_time_unix_nano), 'UTC') FROM odd_spans)
    ) AS is_stored_before
SELECT
    *,
    is_first AND NOT is_stored AS is_new,
    is_first AND (NOT is_stored OR is_stored_before) AS is_own
FROM
(
    WITH
        arrayFilter(refusal -> refusal != '', arrayConcat(
            arrayMap((key, text, truth, real, whole) -> multiIf(
                key IN (
                        'graph.gpu_time_ns', 'graph.wall_time_ns', 'scheduler.estimate_ns', 'scheduler.estimate_gpu_ns',
                        'scheduler.estimate_handoff_ns'),
                    multiIf(isNull(whole), concat(key, ' is not an integer'), whole < 0, concat(key, ' is negative'),
                        whole > 3600000000000, concat(key, ' is above one hour'), ''),
                key IN (
                        'graph.sequence', 'graph.queue_depth', 'batch.lanes', 'batch.tokens_drafted',
                        'batch.tokens_accepted', 'batch.tokens_emitted', 'batch.verification_budget'),
                    multiIf(isNull(whole), concat(key, ' is not an integer'), whole < 0, concat(key, ' is negative'), ''),
                key IN (
                        'graph.name', 'graph.kind', 'graph.purpose', 'graph.gpu_time_source',
                        'graph.completion_feedback_reason', 'scheduler.cost_model', 'cell.id', 'cell.arm'),
                    multiIf(isNull(text), concat(key, ' is not a string'),
                        NOT isValidUTF8(text), concat(key, ' is not valid UTF-8'),
                        key IN ('graph.kind', 'graph.purpose', 'graph.gpu_time_source', 'graph.completion_feedback_reason')
                        AND (key, text) NOT IN (
                            ('graph.kind', 'plain_decode'), ('graph.kind', 'speculative'), ('graph.kind', 'prefill'),
                            ('graph.kind', 'mixed'), ('graph.kind', 'draft'), ('graph.kind', 'state'), ('graph.purpose',
                            'ordinary'), ('graph.purpose', 'refresh'), ('graph.purpose', 'acceptance_probe'),
                            ('graph.gpu_time_source', 'cuda_event'), ('graph.gpu_time_source', 'cupti'),
                            ('graph.gpu_time_source', 'profiler'), ('graph.gpu_time_source', 'host'),
                            ('graph.gpu_time_source', 'simulated'), ('graph.completion_feedback_reason', 'prefill'),
                            ('graph.completion_feedback_reason', 'state'), ('graph.completion_feedback_reason',
                            'grammar'), ('graph.completion_feedback_reason', 'host_stop'),
                            ('graph.completion_feedback_reason', 'copied_proposals'), ('graph.completion_feedback_reason',
                            'completion_inputs')),
                        concat(key, ' is unknown'), ''),
                key IN ('graph.after_idle', 'graph.completion_feedback'), if(isNull(truth), concat(key, ' is not a boolean'), ''),
                key IN ('graph.gpu_start_offset_ns', 'cell.position', 'cell.concurrency'),
                    multiIf(isNull(whole), concat(key, ' is not an integer'),
                        key = 'graph.gpu_start_offset_ns' AND whole < -3600000000000, concat(key, ' is more than one hour early'),
                        key = 'graph.gpu_start_offset_ns' AND whole > 3600000000000, concat(key, ' is above one hour'), ''),
                key = 'scheduler.expected_tokens' AND NOT isFinite(coalesce(real, toFloat64(whole), nan)), concat(key, ' is not a number'),
                ''), keys, strings, booleans, reals, integers),
            [
                if(has(keys, 'graph.name'), '', 'graph.name is missing'),
                if(has(keys, 'graph.kind'), '', 'graph.kind is missing'),
                if(has(keys, 'graph.sequence'), '', 'graph.sequence is missing'),
                if(has(keys, 'graph.gpu_time_ns'), '', 'graph.gpu_time_ns is missing'),
                if(has(keys, 'graph.wall_time_ns'), '', 'graph.wall_time_ns is missing'),
                multiIf(
                    isNotNull(coalesce(strings[at_scheduler_candidate_graphs], toString(booleans[at_scheduler_candidate_graphs]), toString(reals[at_scheduler_candidate_graphs]), toString(integers[at_scheduler_candidate_graphs])))
                        OR has(given_scheduler_candidate_graphs, NULL), 'scheduler.candidate_graphs is not an array of strings',
                    arrayExists(x -> NOT isValidUTF8(x), scheduler_candidate_graphs), 'scheduler.candidate_graphs is not valid UTF-8',
                    ''),
                multiIf(
                    isNotNull(coalesce(strings[at_scheduler_candidate_estimates_ns], toString(booleans[at_scheduler_candidate_estimates_ns]), toString(reals[at_scheduler_candidate_estimates_ns]), toString(integers[at_scheduler_candidate_estimates_ns])))
                        OR has(given_scheduler_candidate_estimates_ns, NULL), 'scheduler.candidate_estimates_ns is not an array of integers',
                    arrayExists(x -> x < 0, scheduler_candidate_estimates_ns), 'scheduler.candidate_estimates_ns is negative',
                    arrayExists(x -> x > 3600000000000, scheduler_candidate_estimates_ns), 'scheduler.candidate_estimates_ns is above one hour',
                    ''),
                multiIf(
                    isNotNull(coalesce(strings[at_scheduler_candidate_expected_tokens], toString(booleans[at_scheduler_candidate_expected_tokens]), toString(reals[at_scheduler_candidate_expected_tokens]), toString(integers[at_scheduler_candidate_expected_tokens])))
                        OR has(given_scheduler_candidate_expected_tokens, NULL)
                        OR arrayExists(x -> NOT isFinite(x), scheduler_candidate_expected_tokens), 'scheduler.candidate_expected_tokens is not an array of numbers',
                    '')
            ])) AS attribute_refusals
    SELECT
        request_id,
        fromUnixTimestamp64Nano(toInt64(span.start_time_unix_nano), 'UTC') AS started_at,
        toInt64(span.end_time_unix_nano - span.start_time_unix_nano) AS duration_ns,
        received_at,
        toFixedString(substring(span.trace_id, 1, 16), 16) AS trace_id,
        toFixedString(substring(span.span_id, 1, 8), 8) AS span_id,
        service_instance_id, service_name, host_name, engine_name, engine_version, engine_package, engine_recipe,
        engine_tensor_parallel, gpu_ids,
        engine_attributes,
        ifNull(strings[indexOf(keys, 'graph.name')], '') AS graph_name,
        ifNull(strings[indexOf(keys, 'graph.kind')], '') AS graph_kind,
        ifNull(strings[indexOf(keys, 'graph.purpose')], 'ordinary') AS graph_purpose,
        ifNull(integers[indexOf(keys, 'graph.sequence')], 0) AS graph_sequence,
        ifNull(integers[indexOf(keys, 'graph.gpu_time_ns')], 0) AS graph_gpu_time_ns,
        ifNull(integers[indexOf(keys, 'graph.wall_time_ns')], 0) AS graph_wall_time_ns,
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
        ifNull(reals[indexOf(keys, 'scheduler.expected_tokens') AS at_scheduler_expected_tokens], toFloat64(integers[at_scheduler_expected_tokens])) AS scheduler_expected_tokens,
        arrayMap(x -> ifNull(x, ''), arrays[indexOf(keys, 'scheduler.candidate_graphs') AS at_scheduler_candidate_graphs].string_value AS given_scheduler_candidate_graphs) AS scheduler_candidate_graphs,
        arrayMap(x -> ifNull(x, 0), arrayMap((whole, real) -> ifNull(whole, accurateCastOrNull(real, 'Int64')),
            arrays[indexOf(keys, 'scheduler.candidate_estimates_ns') AS at_scheduler_candidate_estimates_ns].int_value, arrays[at_scheduler_candidate_estimates_ns].double_value) AS given_scheduler_candidate_estimates_ns) AS scheduler_candidate_estimates_ns,
        arrayMap(x -> ifNull(x, 0), arrayMap((whole, real) -> ifNull(real, toFloat64(whole)),
            arrays[indexOf(keys, 'scheduler.candidate_expected_tokens') AS at_scheduler_candidate_expected_tokens].int_value, arrays[at_scheduler_candidate_expected_tokens].double_value) AS given_scheduler_candidate_expected_tokens) AS scheduler_candidate_expected_tokens,
        ifNull(strings[indexOf(keys, 'cell.id')], '') AS cell_id,
        ifNull(strings[indexOf(keys, 'cell.arm')], '') AS cell_arm,
        integers[indexOf(keys, 'cell.position')] AS cell_position,
        integers[indexOf(keys, 'cell.concurrency')] AS cell_concurrency,
        graph_gpu_time_ns > graph_wall_time_ns OR ifNull(graph_gpu_start_offset_ns < 0, false) AS clock_trouble,
        multiIf(
            length(span.trace_id) != 16 OR span.trace_id = repeat('\0', 16), 'trace id is not 16 bytes or all zero',
            length(span.span_id) != 8 OR span.span_id = repeat('\0', 8), 'span id is not 8 bytes or all zero',
            span.start_time_unix_nano = 0, 'span start is zero',
            span.start_time_unix_nano > 9223372036854775807, 'span start is beyond signed 64 bit nanoseconds',
            span.end_time_unix_nano < span.start_time_unix_nano, 'span end is before span start',
            -- Not as a difference: that of unsigned integers is signed, and may wrap.
            span.end_time_unix_nano > span.start_time_unix_nano + 3600000000000, 'span is longer than one hour',
            span.end_time_unix_nano > 9223372036854775807, 'span end is beyond signed 64 bit nanoseconds',
            resource_refusal != '', resource_refusal,
            notEmpty(attribute_refusals), arraySort(refusal -> indexOf([
                'graph.name', 'graph.kind', 'graph.purpose', 'graph.sequence', 'graph.gpu_time_ns', 'graph.wall_time_ns',
                'graph.gpu_start_offset_ns', 'graph.gpu_time_source', 'graph.queue_depth', 'graph.after_idle',
                'graph.completion_feedback', 'graph.completion_feedback_reason', 'batch.lanes', 'batch.tokens_drafted',
                'batch.tokens_accepted', 'batch.tokens_emitted', 'batch.verification_budget', 'scheduler.cost_model',
                'scheduler.estimate_ns', 'scheduler.estimate_gpu_ns', 'scheduler.estimate_handoff_ns',
                'scheduler.expected_tokens', 'scheduler.candidate_graphs', 'scheduler.candidate_estimates_ns',
                'scheduler.candidate_expected_tokens', 'cell.id', 'cell.arm', 'cell.position', 'cell.concurrency'
                ], splitByChar(' ', refusal)[1]), attribute_refusals)[1],
            length(scheduler_candidate_graphs) != length(scheduler_candidate_estimates_ns)
                OR length(scheduler_candidate_graphs) != length(scheduler_candidate_expected_tokens),
                'candidate arrays differ in length',
            '') AS refusal
    FROM
    (
        SELECT
            request_id, received_at, span,
            service_instance_id, service_name, host_name, engine_name, engine_version, engine_package, engine_recipe,
            engine_tensor_parallel, gpu_ids, engine_attributes, resource_refusal,
            span.attributes AS attributes,
            attributes.value.string_value AS strings,
            attributes.value.bool_value AS booleans,
            attributes.value.double_value AS reals,
            arrayMap((whole, real) -> ifNull(whole, accurateCastOrNull(real, 'Int64')), attributes.value.int_value, reals) AS integers,
            attributes.value.array_value.values AS arrays,
            arrayMap((key, nth, text, truth, real, whole, list) -> if(
                nth > 1 OR text = '' OR (isNull(text) AND isNull(truth) AND isNull(real) AND isNull(whole) AND empty(list)), '', toString(key)),
                attributes.key, arrayEnumerateUniq(attributes.key), strings, booleans, reals, attributes.value.int_value, arrays) AS keys
        FROM
        (
            SELECT
                request_id, received_at, span,
                service_instance_id, service_name, host_name, engine_name, engine_version, engine_package, engine_recipe,
                engine_tensor_parallel, gpu_ids, engine_attributes,
                arrays[indexOf(keys, 'gpu.ids') AS at_gpu_ids].string_value AS given_gpu_ids,
                arrayFilter(refusal -> refusal != '', arrayConcat(
                    arrayMap((key, text, whole) -> multiIf(
                        key IN ('service.instance.id', 'service.name', 'host.name', 'engine.name',
                            'engine.version', 'engine.package', 'engine.recipe'),
                            multiIf(isNull(text), concat(key, ' is not a string'),
                                NOT isValidUTF8(text), concat(key, ' is not valid UTF-8'), ''),
                        key = 'engine.tensor_parallel' AND isNull(whole), concat(key, ' is not an integer'),
                        startsWith(key, 'engine.') AND NOT (isValidUTF8(key) AND isValidUTF8(ifNull(text, ''))),
                            'an attribute under engine. is not valid UTF-8',
                        ''), keys, strings, integers),
                    [
                        if(service_instance_id != '' OR has(keys, 'service.instance.id'), '', 'service.instance.id is missing'),
                        multiIf(
                            isNotNull(coalesce(strings[at_gpu_ids], toString(booleans[at_gpu_ids]), toString(reals[at_gpu_ids]), toString(integers[at_gpu_ids])))
                                OR has(given_gpu_ids, NULL), 'gpu.ids is not an array of strings',
                            arrayExists(x -> NOT isValidUTF8(x), gpu_ids), 'gpu.ids is not valid UTF-8',
                            '')
                    ])) AS resource_refusals,
                if(empty(resource_refusals), '', arraySort(refusal -> indexOf([
                        'service.instance.id', 'service.name', 'host.name', 'engine.name', 'engine.version',
                        'engine.package', 'engine.recipe', 'engine.tensor_parallel', 'gpu.ids', 'an'
                    ], splitByChar(' ', refusal)[1]), resource_refusals)[1]) AS resource_refusal
            FROM
            (
                SELECT
                    request_id, received_at, span,
                    service_instance_id, service_name, host_name, engine_name, engine_version, engine_package, engine_recipe,
                    engine_tensor_parallel, gpu_ids, engine_attributes,
                    -- Handed on only where something about the resource is odd. One without attributes looks the same: so
                    -- whether the instance is missing is asked of its column.
                    odd_resource AS attributes,
                    attributes.value.string_value AS strings,
                    attributes.value.bool_value AS booleans,
                    attributes.value.double_value AS reals,
                    arrayMap((whole, real) -> ifNull(whole, accurateCastOrNull(real, 'Int64')), attributes.value.int_value, reals) AS integers,
                    attributes.value.array_value.values AS arrays,
                    arrayMap((key, nth, text, truth, real, whole, list) -> if(
                        nth > 1 OR text = '' OR (isNull(text) AND isNull(truth) AND isNull(real) AND isNull(whole) AND empty(list)), '', toString(key)),
                        attributes.key, arrayEnumerateUniq(attributes.key), strings, booleans, reals, attributes.value.int_value, arrays) AS keys
                FROM odd_spans
            )
        )
    )
)
