-- What the engine can do at best with the same bytes: every attribute into its typed column, nothing checked, nothing
-- looked up, nothing counted. Fed from a table like otlp_requests, into tables like new_executions and graph_executions.
CREATE MATERIALIZED VIEW decode_plainly TO new_executions AS
SELECT
    span.trace_id AS trace_id, span.span_id AS span_id,
    fromUnixTimestamp64Nano(toInt64(span.start_time_unix_nano), 'UTC') AS started_at,
    toInt64(span.end_time_unix_nano - span.start_time_unix_nano) AS duration_ns,
    ifNull(strings_of_resource[indexOf(keys_of_resource, 'service.instance.id')], '') AS service_instance_id,
    ifNull(strings_of_resource[indexOf(keys_of_resource, 'service.name')], '') AS service_name,
    ifNull(strings_of_resource[indexOf(keys_of_resource, 'host.name')], '') AS host_name,
    ifNull(strings_of_resource[indexOf(keys_of_resource, 'engine.name')], '') AS engine_name,
    ifNull(strings_of_resource[indexOf(keys_of_resource, 'engine.version')], '') AS engine_version,
    ifNull(strings_of_resource[indexOf(keys_of_resource, 'engine.package')], '') AS engine_package,
    ifNull(strings_of_resource[indexOf(keys_of_resource, 'engine.recipe')], '') AS engine_recipe,
    ifNull(strings[indexOf(keys, 'graph.name')], '') AS graph_name,
    ifNull(strings[indexOf(keys, 'graph.kind')], '') AS graph_kind,
    ifNull(strings[indexOf(keys, 'graph.purpose')], '') AS graph_purpose,
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
    reals[indexOf(keys, 'scheduler.expected_tokens')] AS scheduler_expected_tokens,
    arrayMap(x -> ifNull(x, ''), arrays.string_value[indexOf(keys, 'scheduler.candidate_graphs')])
        AS scheduler_candidate_graphs,
    arrayMap(x -> ifNull(x, 0), arrays.int_value[indexOf(keys, 'scheduler.candidate_estimates_ns')])
        AS scheduler_candidate_estimates_ns,
    arrayMap(x -> ifNull(x, 0), arrays.double_value[indexOf(keys, 'scheduler.candidate_expected_tokens')])
        AS scheduler_candidate_expected_tokens,
    ifNull(strings[indexOf(keys, 'cell.id')], '') AS cell_id,
    ifNull(strings[indexOf(keys, 'cell.arm')], '') AS cell_arm,
    integers[indexOf(keys, 'cell.position')] AS cell_position,
    integers[indexOf(keys, 'cell.concurrency')] AS cell_concurrency
FROM
(
    SELECT
        span,
        resource.resource.attributes.key AS keys_of_resource,
        resource.resource.attributes.value.string_value AS strings_of_resource,
        span.attributes.key AS keys,
        span.attributes.value.string_value AS strings,
        span.attributes.value.bool_value AS booleans,
        span.attributes.value.int_value AS integers,
        span.attributes.value.double_value AS reals,
        span.attributes.value.array_value.values AS arrays
    FROM
    (
        SELECT resource, arrayJoin(arrayFlatten(resource.scope_spans.spans)) AS span
        FROM (SELECT arrayJoin(resource_spans) AS resource FROM otlp_requests)
    )
)
