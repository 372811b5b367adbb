"""What a run came to."""

from collections import Counter
from typing import Final

from engine_hooks.contract.execution import GraphExecution
from engine_hooks.contract.names import GraphKind, Purpose

LATE_NS: Final = 5_000_000
"""The device idled so long before a round that the host was late: longer than a round takes."""


class Totals:
    """Sums over executions as they were recorded. Start-up calibrations are counted apart."""

    def __init__(self) -> None:
        self.executions = 0
        self.calibrations = 0
        self.tokens_emitted = 0
        self.late: Counter[GraphKind] = Counter()
        """Rounds of decoding to which the host came late by itself: not by a stumble that was asked for."""
        self.before_stumble: Totals | None = None
        """What it had come to when the host first stumbled as asked."""
        self._wall_ns: Counter[tuple[GraphKind, Purpose]] = Counter()

    def add(self, execution: GraphExecution, *, stumbled: bool = False) -> None:
        """One more execution; `stumbled`: the host stumbled before it, as it was asked to."""
        self.executions += 1
        self.tokens_emitted += execution.batch_tokens_emitted or 0
        self._wall_ns[execution.graph_kind, execution.graph_purpose] += execution.graph_wall_time_ns
        self.late[execution.graph_kind] += not stumbled and _is_late(execution)

    def mark_stumble(self) -> None:
        """The host stumbles, as it was asked to: what comes from now on is told apart."""
        if self.before_stumble is None:
            self.before_stumble = Totals()
            self.before_stumble._wall_ns = self._wall_ns.copy()

    @property
    def plain_fraction(self) -> float:
        """Share of ordinary decoding wall time spent in plain decode: what makes a cell stuck above 0.3."""
        return _plain_fraction(self._wall_ns)

    @property
    def plain_fraction_since_stumble(self) -> float | None:
        """The same from the first stumble that was asked for; `None` where none has happened."""
        before = self.before_stumble
        return None if before is None else _plain_fraction(self._wall_ns - before._wall_ns)


def _plain_fraction(wall_ns: Counter[tuple[GraphKind, Purpose]]) -> float:
    plain_ns = wall_ns[GraphKind.PLAIN_DECODE, Purpose.ORDINARY]
    return plain_ns / ((plain_ns + wall_ns[GraphKind.SPECULATIVE, Purpose.ORDINARY]) or 1)


def _is_late(execution: GraphExecution) -> bool:
    """Only a drained queue shows it, and only there a cost model may charge it."""
    idle_ns = execution.graph_wall_time_ns - execution.graph_gpu_time_ns
    return execution.graph_kind != GraphKind.PREFILL and execution.graph_queue_depth == 0 and idle_ns > LATE_NS
