"""A note on what no record shows: how long a slow host takes for a graph that hardly ran."""

import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Final

from engine_hooks.commands.counting import counted
from engine_hooks.contract.execution import GraphExecution
from engine_hooks.contract.names import DECODING_KINDS
from queries.known_by_then import observed_at
from queries.replay.host import planned_rounds

SLOW_ABOVE: Final = 1.02
"""Planning over GPU time from which a host is slower than the device."""
ROUNDS_MIN: Final = 8
"""Rounds of a graph that show it."""
HARDLY: Final = 0.05
"""Share of the decoding rounds up to which a graph hardly ran."""
PREFERRED: Final = 0.1
"""Share of a replay's choices from which it prefers a graph."""


def notes_on_slow_host(executions: Sequence[GraphExecution], preferred: Iterable[str]) -> tuple[str, ...]:
    """One sentence where the host was slower than the device, and graphs are preferred that hardly ran.

    Args:
        executions: The cell's, in the order of submission.
        preferred: The graphs that a replay prefers.
    """
    rounds = Counter(one.graph_name for one in executions if one.graph_kind in DECODING_KINDS)
    hardly = [graph for graph in dict.fromkeys(preferred) if rounds[graph] <= HARDLY * rounds.total()]
    slow = slow_graphs(executions) if hardly else []
    if not slow:
        return ()
    ran = " and ".join(f"{graph} ({counted(rounds[graph], 'round')} in the cell)" for graph in hardly)
    return (
        f"the host was slower than the device with {', '.join(slow)}; how long it takes with {ran} is hardly known, so that "
        "the gain may be less or more than it looks",
    )


def preferred_of(choices: Mapping[str, int]) -> list[str]:
    """The graphs that a fair share of these choices are."""
    return [graph for graph, times in choices.items() if times >= PREFERRED * max(sum(choices.values()), 1)]


def slow_graphs(executions: Sequence[GraphExecution]) -> list[str]:
    """The graphs that the host took longer for than the device, though it waited for nothing."""
    late = {after.graph_sequence for one, after in pairwise(executions) if observed_at(one) >= after.started_at}
    ratios: dict[str, list[float]] = defaultdict(list)
    for planned in planned_rounds(executions):
        one = planned.execution
        if one.graph_kind in DECODING_KINDS and one.graph_gpu_time_ns:
            ratio = planned.planning_ns / one.graph_gpu_time_ns
            ratios[one.graph_name].append(ratio if one.graph_sequence in late else 0.0)
    return sorted(graph for graph, of in ratios.items() if len(of) >= ROUNDS_MIN and statistics.median(of) > SLOW_ABOVE)
