-- Hands the exporter's rows to otlp_requests, as the OTLP requests that they were: from there on they go the way of all
-- executions, are checked, counted and found again. Whatever is inserted, it must not fail: an insert that a view refuses
-- is refused whole.
--
-- The exporter writes every attribute as text, arrays as JSON. The contract says what each is, so it is read as that. What
-- does not read so stays text, and is refused and counted, as it is at every other door. A number that was sent as text
-- passes for a number: here they look alike.
--
-- Spans that are no graph executions are left alone. One request for each resource of an insert. All are counted under one id, and a span that comes again is known by its
-- identity, so that the exporter may send again what it likes.
CREATE MATERIALIZED VIEW IF NOT EXISTS decode_otel_traces TO otlp_requests AS
WITH
    x -> accurateCastOrNull(x, 'Int64') AS whole,
    x -> toFloat64OrNull(replaceOne(x, 'json: unsupported value: ', '')) AS real,
    -- Of an array's element, by its JSON.
    x -> if(startsWith(x, '"'), JSONExtractString(x), NULL) AS quoted
SELECT
    'otel_traces' AS request_id,
    toUInt64(toUnixTimestamp64Milli(now64(3))) AS received_unix_ms,
    [(
        tuple(arrayMap((name, text) -> (
            name,
            (
                if((name = 'engine.tensor_parallel' AND isNotNull(real(text))) OR (name = 'gpu.ids' AND startsWith(text, '[')), NULL, text),
                NULL,
                if(name = 'engine.tensor_parallel', whole(text), NULL),
                if(name = 'engine.tensor_parallel' AND isNull(whole(text)), real(text), NULL),
                tuple(if(name = 'gpu.ids', arrayMap(x -> (quoted(x), NULL, NULL), JSONExtractArrayRaw(text)), []))
            )
        ), mapKeys(ResourceAttributes), mapValues(ResourceAttributes))),
        [tuple(groupArray((
            unhex(TraceId),
            unhex(SpanId),
            SpanName,
            toUInt64(toUnixTimestamp64Nano(Timestamp)),
            toUInt64(toUnixTimestamp64Nano(Timestamp)) + Duration,
            arrayMap((name, text, kind) -> (
                name,
                (
                    if((kind = 'truth' AND text IN ('true', 'false')) OR (kind IN ('whole', 'real') AND isNotNull(real(text)))
                        OR (startsWith(kind, 'list') AND startsWith(text, '[')), NULL, text),
                    if(kind = 'truth' AND text IN ('true', 'false'), text = 'true', NULL),
                    if(kind = 'whole', whole(text), NULL),
                    if(kind = 'real' OR (kind = 'whole' AND isNull(whole(text))), real(text), NULL),
                    tuple(if(startsWith(kind, 'list'), arrayMap(x -> (
                        quoted(x),
                        if(kind = 'list of wholes', whole(x), NULL),
                        if(kind = 'list of reals' OR (kind = 'list of wholes' AND isNull(whole(x))), real(x), NULL)
                    ), JSONExtractArrayRaw(text)), []))
                )
            ), mapKeys(SpanAttributes), mapValues(SpanAttributes), arrayMap(name -> transform(name, [
                'graph.after_idle', 'graph.completion_feedback',
                'graph.sequence', 'graph.gpu_time_ns', 'graph.wall_time_ns', 'graph.gpu_start_offset_ns',
                'graph.queue_depth', 'batch.lanes', 'batch.tokens_drafted', 'batch.tokens_accepted',
                'batch.tokens_emitted', 'batch.verification_budget', 'scheduler.estimate_ns',
                'scheduler.estimate_gpu_ns', 'scheduler.estimate_handoff_ns', 'cell.position', 'cell.concurrency',
                'scheduler.expected_tokens',
                'scheduler.candidate_graphs', 'scheduler.candidate_estimates_ns', 'scheduler.candidate_expected_tokens'],
                ['truth', 'truth',
                'whole', 'whole', 'whole', 'whole', 'whole', 'whole', 'whole', 'whole', 'whole', 'whole', 'whole', 'whole', 'whole',
                'whole', 'whole',
                'real',
                'list of texts', 'list of wholes', 'list of reals'],
                'text'), mapKeys(SpanAttributes)))
        )))]
    )]::Array(Tuple(
        resource Tuple(attributes Array(Tuple(
            key LowCardinality(String),
            value Tuple(
                string_value Nullable(String), bool_value Nullable(Bool),
                int_value Nullable(Int64), double_value Nullable(Float64),
                array_value Tuple(values Array(Tuple(
                    string_value Nullable(String),
                    int_value Nullable(Int64), double_value Nullable(Float64)))))))),
        scope_spans Array(Tuple(spans Array(Tuple(
            trace_id String,
            span_id String,
            name String,
            start_time_unix_nano UInt64,
            end_time_unix_nano UInt64,
            attributes Array(Tuple(
                key LowCardinality(String),
                value Tuple(
                    string_value Nullable(String), bool_value Nullable(Bool),
                    int_value Nullable(Int64), double_value Nullable(Float64),
                    array_value Tuple(values Array(Tuple(
                        string_value Nullable(String),
                        int_value Nullable(Int64), double_value Nullable(Float64)))))))
        ))))
    )) AS resource_spans
FROM otel_traces
WHERE SpanName = 'execute_graph' OR startsWith(SpanName, 'execute_graph ')
GROUP BY ResourceAttributes
