"""Graph executions timed by pairs of device events: one state machine for every device that has such events.

Standard library only. `torch_cuda` and `torch_cpu` are the devices; decision record 0016 tells why it is so.
"""
