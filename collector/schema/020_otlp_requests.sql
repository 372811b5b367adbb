-- One row for each OTLP request, as OTLP has it (the same tree as otlp.proto). Keeps nothing: its views do.
CREATE TABLE IF NOT EXISTS otlp_requests
(
    request_id String,
    received_unix_ms UInt64,
    resource_spans Array(Tuple(
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
    ))
)
ENGINE = Null
