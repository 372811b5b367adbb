"""What goes wrong in the hooks.

EngineHooksError
├── ContractError   a span or record that breaks the contract
├── RecorderError   a recorder that cannot be set up as asked
└── SendError       the collector is away, or refused executions
"""


class EngineHooksError(Exception):
    """Root of everything the hooks raise. Its text is one clear line."""

    exit_code: int = 1


class ContractError(EngineHooksError, ValueError):
    """A span or record that breaks the contract. Its text is one of `contract.reasons`."""


class RecorderError(EngineHooksError):
    """A recorder that cannot be set up as asked, by its arguments or by `OTEL_*` variables."""


class SendError(EngineHooksError):
    """The collector is away, refused executions, or has no such address. Its text is one clear line."""
