"""Errors of the simulator.

SimulatorError   a scenario or engine that cannot be simulated
"""

from engine_hooks.errors import EngineHooksError


class SimulatorError(EngineHooksError):
    """A scenario or engine that cannot be simulated. Its text is one clear line."""
