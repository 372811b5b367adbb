"""Errors of `tachograph simulate`.

EngineHooksError
└── SimulateCommandError   a wrong option, or a file that cannot be written
"""

from engine_hooks.errors import EngineHooksError


class SimulateCommandError(EngineHooksError):
    """A wrong option, or a file that cannot be written. Its text is one clear line."""

    exit_code = 2
