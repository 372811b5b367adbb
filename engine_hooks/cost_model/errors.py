"""Errors of the cost models.

CostModelError
├── UnknownCostModelError   no model of that name
├── SettingError            a setting is out of range or unknown
└── StateError              a saved state is not one of this model
"""

from engine_hooks.errors import EngineHooksError


class CostModelError(EngineHooksError):
    """Root of every error of this package. Its text is one clear line for the user."""


class UnknownCostModelError(CostModelError):
    """No cost model of that name is registered."""

    exit_code = 2


class SettingError(CostModelError):
    """A setting is unknown or out of range."""


class StateError(CostModelError):
    """A saved state does not belong to this model."""
