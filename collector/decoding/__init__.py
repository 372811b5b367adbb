"""From the bytes of a request to bytes that ClickHouse decodes: checking, marking, and OTLP/JSON."""
