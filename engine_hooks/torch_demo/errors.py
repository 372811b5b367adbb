"""Errors of the demo engine.

EngineHooksError
└── DemoError                a fault of the demo's run
    ├── TorchMissingError    PyTorch is not installed
    ├── AllLostError         nothing that was recorded reached a collector
    ├── PartLostError        a part of what was recorded reached none
    └── DemoOptionError      an option that cannot be used
"""

from engine_hooks.errors import EngineHooksError


class DemoError(EngineHooksError):
    """A fault of the demo's run. Its text is one clear line."""


class TorchMissingError(DemoError):
    """PyTorch is not installed."""


class AllLostError(DemoError):
    """Nothing that was recorded reached a collector."""


class PartLostError(DemoError):
    """A part of what was recorded reached no collector, as far as this end knows."""


class DemoOptionError(DemoError):
    """An option that cannot be used."""

    exit_code = 2
