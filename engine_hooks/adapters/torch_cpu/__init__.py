"""A queue of work on the CPU that behaves as a GPU's stream does, and its events.

Standard library only; the work that is submitted is the engine's, torch's or any other.
"""
