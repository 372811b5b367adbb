"""What a GPU profile becomes, whichever profiler wrote it: its graph launches as `GraphExecution`s.

`columns` is what a reader fills (`kineto`, `nsight`), `devices` and `launches` make executions
of it, `imported` makes engine instances of these. Source: `docs/importing.md`.
"""
