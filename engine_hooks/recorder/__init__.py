"""The recorder: the engine's thread appends, a background thread builds spans and exports them over OTLP."""
