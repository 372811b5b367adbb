"""What a run came to."""

from collections import Counter

from engine_hooks.contract.execution import GraphExecution
from engine_hooks.contract.names import GraphKind, Purpose


class Totals:
    """Sums over executions as they were recorded. Start-up calibrations are not among them."""

    def __init__(self) -> None:
        self.executions = 0
        self.tokens_emitted = 0
        self._wall_ns: Counter[tuple[GraphKind, Purpose]] = Counter()

    def add(self, execution: GraphExecution) -> None:
        """One more execution."""
        self.executions += 1
        self.tokens_emitted += execution.batch_tokens_emitted or 0
        self._wall_ns[execution.graph_kind, execution.graph_purpose] += execution.graph_wall_time_ns

    @property
    def plain_fraction(self) -> float:
        """Share of ordinary decoding wall time spent in plain decode: what makes a cell stuck above 0.3."""
        plain_ns = self._wall_ns[GraphKind.PLAIN_DECODE, Purpose.ORDINARY]
        return plain_ns / ((plain_ns + self._wall_ns[GraphKind.SPECULATIVE, Purpose.ORDINARY]) or 1)
