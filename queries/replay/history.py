"""How much of an engine's past is in what was read."""

from collections.abc import Sequence

from engine_hooks.contract.execution import GraphExecution
from queries.record import CellExecutions
from queries.replay.result import History


def history_of(cell: CellExecutions) -> History:
    """What a model can learn from before the cell's first execution."""
    everything = (*cell.before, *cell.executions)
    first = everything[0]
    return History(
        len(cell.before),
        (cell.executions[0].started_at - first.started_at) / 1e9,
        first.graph_sequence == 0,
        executions_lost(everything),
    )


def executions_lost(executions: Sequence[GraphExecution]) -> int:
    """Submission numbers missing between the first and the last."""
    sequences = {one.graph_sequence for one in executions}
    return max(sequences) - min(sequences) + 1 - len(sequences) if sequences else 0
