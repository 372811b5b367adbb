-- One row for each graph execution that needs a second look. Keeps nothing: its view does.
CREATE TABLE IF NOT EXISTS odd_spans
(
    request_id String,
    received_at DateTime64(3, 'UTC'),

    service_instance_id LowCardinality(String),
    service_name LowCardinality(String),
    host_name LowCardinality(String),
    engine_name LowCardinality(String),
    engine_version LowCardinality(String),
    engine_package LowCardinality(String),
    engine_recipe LowCardinality(String),
    engine_tensor_parallel Nullable(Int64),
    gpu_ids Array(String),
    engine_attributes Map(String, String),

    odd_resource Array(Tuple(
        key LowCardinality(String),
        value Tuple(
            string_value Nullable(String), bool_value Nullable(Bool),
            int_value Nullable(Int64), double_value Nullable(Float64),
            array_value Tuple(values Array(Tuple(
                string_value Nullable(String),
                int_value Nullable(Int64), double_value Nullable(Float64))))))),
    span Tuple(
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
                    int_value Nullable(Int64), double_value Nullable(Float64))))))))
)
ENGINE = Null
