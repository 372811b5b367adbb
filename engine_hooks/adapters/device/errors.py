"""Errors of the device adapters.

EngineHooksError
└── DeviceError
    ├── DeviceSettingError   a bound out of range
    └── DeviceQueueError     a CPU queue that is closed, full, or whose work failed
"""

from engine_hooks.errors import EngineHooksError


class DeviceError(EngineHooksError):
    """Root of what the device adapters raise. Its text is one clear line."""


class DeviceSettingError(DeviceError):
    """A bound of a tracker is out of range."""


class DeviceQueueError(DeviceError):
    """A queue of work on the CPU is closed or full, or a piece of its work raised."""
