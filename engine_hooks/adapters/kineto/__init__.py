"""PyTorch profiler (Kineto) traces. `reading` streams a file, `trace` keeps what matters of it in columns."""
