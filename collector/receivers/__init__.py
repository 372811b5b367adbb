"""The doors that executions come in by: OTLP over gRPC and over HTTP."""
