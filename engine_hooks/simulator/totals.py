"""What a simulated cell comes to."""

from engine_hooks.contract.names import GraphKind, Purpose

STUCK_ABOVE = 0.3
"""A cell is stuck in plain when more than this share of its ordinary decoding time was plain decode."""


class Totals:
    """Running sums over the executions that were observed."""

    __slots__ = ("has_speculative", "plain_ns", "rounds", "speculative_ns", "tokens_emitted")

    def __init__(self, *, has_speculative: bool) -> None:
        self.has_speculative = has_speculative
        self.rounds = 0
        self.tokens_emitted = 0
        self.plain_ns = 0
        """Wall time of ordinary plain decode."""
        self.speculative_ns = 0
        """Wall time of ordinary speculative rounds."""

    def add(self, kind: GraphKind, purpose: Purpose, wall_time_ns: int, tokens_emitted: int) -> None:
        """Add one observed execution."""
        self.rounds += 1
        self.tokens_emitted += tokens_emitted
        if purpose is Purpose.ORDINARY:
            if kind is GraphKind.SPECULATIVE:
                self.speculative_ns += wall_time_ns
            elif kind is GraphKind.PLAIN_DECODE:
                self.plain_ns += wall_time_ns

    @property
    def plain_fraction(self) -> float:
        """Share of the ordinary decoding time that was plain decode; 0 without any."""
        decoding_ns = self.plain_ns + self.speculative_ns
        return self.plain_ns / decoding_ns if decoding_ns else 0.0

    @property
    def stuck(self) -> bool:
        """Whether the cell is stuck in plain; never without a speculative graph to choose."""
        return self.has_speculative and self.plain_fraction > STUCK_ABOVE
