"""What a diagnosis is made from."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from engine_hooks.contract.execution import GraphExecution

BEFORE_NS: Final = 120_000_000_000
"""How long before the cell the engine's history is worth reading: four times as long as an estimate lasts unmeasured."""


@dataclass(frozen=True)
class CellRecord:
    """One cell as it was stored, and its neighbourhood."""

    executions: tuple[GraphExecution, ...]
    """Of the cell, in order of `graph_sequence`."""
    before: tuple[GraphExecution, ...] = ()
    """Of the same engine instance before the cell, as far as stored, up to `BEFORE_NS`; in order."""
    service_instance_id: str = ""
    cell: str = ""
    arrival_lag_ns: int | None = None
    """Least time from an observed completion to its arrival at the collector; negative: it came from the future.
    `None`: not known."""
    others_until_ns: tuple[int, ...] = ()
    """Last observed completion of every other engine's executions that arrived within a minute of this cell's."""


def record_of(
    executions: Iterable[GraphExecution], before: Iterable[GraphExecution] = (), **known: object
) -> CellRecord:
    """A record with its executions in order, each once; `known` are the other fields of `CellRecord`."""
    return CellRecord(_in_order(executions), _in_order(before), **known)  # type: ignore[arg-type]


def _in_order(executions: Iterable[GraphExecution]) -> tuple[GraphExecution, ...]:
    by_sequence = {execution.graph_sequence: execution for execution in executions}
    return tuple(by_sequence[sequence] for sequence in sorted(by_sequence))
