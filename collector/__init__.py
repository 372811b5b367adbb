"""OTLP in, ClickHouse out: receivers, decoding, writer, embedded ClickHouse and its HTTP endpoint, schema."""
