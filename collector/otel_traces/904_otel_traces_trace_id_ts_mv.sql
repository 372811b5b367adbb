-- As the exporter (0.140.0) makes it by default.
CREATE MATERIALIZED VIEW IF NOT EXISTS otel_traces_trace_id_ts_mv TO otel_traces_trace_id_ts AS
SELECT TraceId, min(Timestamp) AS Start, max(Timestamp) AS End
FROM otel_traces
WHERE TraceId != ''
GROUP BY TraceId
