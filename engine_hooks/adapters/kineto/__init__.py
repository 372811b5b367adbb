"""PyTorch profiler (Kineto) traces: their graph launches as `GraphExecution`s.

`reading` streams a file, `trace` keeps what matters of it in columns, `launches` makes
executions of the columns; `recorder.sending` delivers them over OTLP. Source: `docs/importing.md`.
"""
