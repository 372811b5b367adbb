"""Cost models: what a graph is believed to cost, learnt from its executions.

Pure and of the standard library only: integers in, integers out, no clock and no
randomness of their own. The live scheduler, the simulator and the replay call this code.
"""
