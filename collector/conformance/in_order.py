"""The executions of one engine instance in the order of their submission, however they come in."""

from collections.abc import Iterator
from heapq import heappop, heappush
from typing import Final, NamedTuple

from collector.conformance import rules
from collector.conformance.findings import Breach
from engine_hooks.contract.execution import GraphExecution


class Submission(NamedTuple):
    """One submission of an engine."""

    sequence: int
    execution: GraphExecution | None
    """None where the contract refuses it: its number was used all the same."""
    span: str
    """How to find it again."""


class InOrder:
    """Holds executions back until all before them are there, or `WINDOW` of them wait."""

    WINDOW: Final = 1024

    def __init__(self) -> None:
        self._waiting: list[int] = []
        self._submissions: dict[int, Submission] = {}
        self._next: int | None = None

    def repeats(self, sequence: int) -> bool:
        """Whether a number was there before, or falls back behind one that was."""
        return sequence in self._submissions or (self._next is not None and sequence < self._next)

    def add(self, submission: Submission) -> None:
        """Take one whose number is not repeated."""
        heappush(self._waiting, submission.sequence)
        self._submissions[submission.sequence] = submission

    def ready(self, *, all_of_them: bool = False) -> Iterator[tuple[Submission, int, Breach | None]]:
        """What may be looked at now, each with how many are missing before it, and that as a breach."""
        while self._waiting and (all_of_them or self._waiting[0] == self._next or len(self._waiting) > self.WINDOW):
            sequence = heappop(self._waiting)
            missing = 0 if self._next is None else sequence - self._next
            yield self._submissions.pop(sequence), missing, self._gap_before(sequence)
            self._next = sequence + 1

    def _gap_before(self, sequence: int) -> Breach | None:
        if self._next is None or sequence == self._next:
            return None
        missing = f"{self._next}" if sequence == self._next + 1 else f"{self._next} to {sequence - 1}"
        return Breach(rules.SEQUENCE_GAP, "", f"{missing} missing")
