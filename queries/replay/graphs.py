"""The graphs that a cell's scheduler chose from."""

from collections import Counter, defaultdict
from collections.abc import Sequence

from engine_hooks.contract.execution import GraphExecution
from engine_hooks.contract.names import DECODING_KINDS, GraphKind
from engine_hooks.scheduler.graphs import DRAFTS_PER_LANE_MAX, Graph, drafts_under
from queries.errors import NotSimulatedError
from queries.record import CellExecutions
from queries.replay.acceptance import Acceptance
from queries.replay.drafts import accepted_tokens
from queries.replay.exact import can_be_taken_again


def candidate_graphs(cell: CellExecutions, lanes: int, acceptance: Acceptance) -> tuple[Graph, ...]:
    """Every graph chosen from in the cell, in the record's order, which breaks ties.

    Raises:
        NotSimulatedError: it does not record what a speculative graph drafts.
    """
    usable = [one for one in cell.executions if can_be_taken_again(one)]
    names = dict.fromkeys(name for one in usable for name in one.scheduler_candidate_graphs)
    seen = executed_graphs((*cell.before, *cell.executions), lanes)
    for name in names:
        if drafts_unknown((*cell.before, *cell.executions), name):
            raise NotSimulatedError(f"cell {cell.cell} records no drafts of {name}")
    expected = {
        name: tokens
        for one in reversed(usable)
        for name, tokens in zip(one.scheduler_candidate_graphs, one.scheduler_candidate_expected_tokens, strict=True)
    }
    return tuple(seen.get(name) or graph_expected(name, expected[name], lanes, acceptance) for name in names)


def drafts_unknown(executions: Sequence[GraphExecution], name: str) -> bool:
    """Whether a speculative graph was chosen, and never a draft of it recorded. Calibrations have none."""
    chosen = [
        one.batch_tokens_drafted
        for one in executions
        if one.graph_name == name and one.graph_kind == GraphKind.SPECULATIVE and one.scheduler_candidate_graphs
    ]
    return bool(chosen) and not any(chosen)


def executed_graphs(executions: Sequence[GraphExecution], lanes: int) -> dict[str, Graph]:
    """The graphs that were executed with so many lanes, each with the drafts that it had most often, if it had any."""
    counted: dict[str, Counter[Graph]] = defaultdict(Counter)
    for one in executions:
        if one.graph_kind in DECODING_KINDS and one.batch_lanes in (lanes, None) and one.scheduler_candidate_graphs:
            budget = budget_in(one.batch_tokens_drafted, lanes)
            if budget is None and one.graph_kind == GraphKind.SPECULATIVE:
                continue
            counted[one.graph_name][Graph(one.graph_name, one.graph_kind, budget)] += 1
    return {name: graphs.most_common(1)[0][0] for name, graphs in counted.items()}


def budget_in(drafted: int | None, lanes: int) -> int | None:
    """The verification budget that yields so many draft tokens; `None` for plain decode."""
    return lanes + drafted if drafted else None


def graph_expected(name: str, expected_tokens: float, lanes: int, acceptance: Acceptance) -> Graph:
    """A graph that was never executed, by what was expected of it when the cell began."""
    if expected_tokens <= lanes * 1.001:
        return Graph(name, GraphKind.PLAIN_DECODE)
    rate, factors = acceptance.believed[0], acceptance.factors
    budgets = range(lanes + 1, lanes * (DRAFTS_PER_LANE_MAX + 1) + 1)

    def misses(budget: int) -> float:
        drafts = drafts_under(budget, lanes)
        return abs(lanes + accepted_tokens(drafts, lanes, rate, factors) - expected_tokens) if drafts else float("inf")

    return Graph(name, GraphKind.SPECULATIVE, min(budgets, key=misses))
