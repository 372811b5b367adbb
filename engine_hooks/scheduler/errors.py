"""Errors of the scheduler.

SchedulerError   graphs or settings it cannot work with
"""

from engine_hooks.errors import EngineHooksError


class SchedulerError(EngineHooksError):
    """Graphs or settings that the scheduler cannot work with. Its text is one clear line."""
