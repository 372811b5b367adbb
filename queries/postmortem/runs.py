"""Whether a cell's executions are of one run: the contract numbers the submissions of each run, and of each rank, from 0."""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from engine_hooks.commands.counting import counted
from engine_hooks.contract.execution import GraphExecution


class Repeats(NamedTuple):
    """Submission numbers that come more than once in a cell."""

    of_several: int
    """Numbers that executions of different times bear: surely several runs or ranks under one service.instance.id."""
    copies: int
    """Executions beyond the first that agree in number and time: the same ones, stored again."""

    def __bool__(self) -> bool:
        return bool(self.of_several or self.copies)

    @property
    def headline(self) -> str:
        """What it means for the figures."""
        if self.of_several:
            return (
                "Several runs or ranks send under one service.instance.id: tokens/s and executions count them together, "
                "all else takes one execution of each number."
            )
        return "Executions are stored twice: tokens/s and executions count them twice, all else once."

    def told(self) -> tuple[str, ...]:
        """What was seen, and what to do."""
        several = (
            f"{counted(self.of_several, 'submission number')} of this cell stand for executions that began at different "
            "times, so that tokens/s and executions are those of several runs or ranks, while choices, losses and plain "
            "decode are told of one execution of each number, from either: give each its own service.instance.id, as the "
            "contract demands."
        )
        copies = (
            f"{counted(self.copies, 'execution')} came again with the number and time of another: what is sent twice "
            "is stored once where both bear the span id that is made of instance and number."
        )
        return ((several,) if self.of_several else ()) + ((copies,) if self.copies else ())


def repeats_of(executions: Sequence[GraphExecution]) -> Repeats:
    """Look at the numbers of one cell's executions."""
    began: dict[int, set[int]] = defaultdict(set)
    for one in executions:
        began[one.graph_sequence].add(one.started_at)
    different = sum(map(len, began.values()))
    return Repeats(sum(len(times) > 1 for times in began.values()), len(executions) - different)
