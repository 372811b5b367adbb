"""The exact form: every recorded decision taken again by another cost model, knowing what was known then.

What was known then, `queries.known_by_then` says. The rounds stay those that were recorded: what the other choices
would have led to is the closed loop's question.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from engine_hooks.contract.execution import GraphExecution
from engine_hooks.contract.names import Purpose
from engine_hooks.cost_model.model import CostModel, measurement_of
from engine_hooks.cost_model.registry import COST_MODELS, cost_model_named
from engine_hooks.scheduler.decision import best_candidate, rates_of
from queries.known_by_then import Knowledge, knowledge_of, may_be_at_once, observed_at


class Belief(NamedTuple):
    """What a model charges the candidates of one recorded decision."""

    execution: GraphExecution
    estimates_ns: tuple[int | None, ...]
    """Of each candidate, in the record's order; `None`: not measured so far, as far as is stored."""


class ReplayedDecision(NamedTuple):
    """One recorded decision, taken again."""

    graph_sequence: int
    started_at: int
    """Submission, in Unix nanoseconds."""
    graph_purpose: Purpose
    graph_name: str
    """As recorded."""
    graph_wall_time_ns: int
    """How long it held up the pipeline, as recorded."""
    scheduler_estimate_ns: int | None
    """As recorded."""
    replayed_graph_name: str
    """What the model chooses; for a refresh or a probe, which no model chooses, the recorded graph."""
    candidate_graphs: tuple[str, ...]
    candidate_estimates_ns: tuple[int, ...]
    """What the model charges each."""
    candidate_expected_tokens: tuple[float, ...]
    """As recorded: what is expected of drafts is no cost model's business."""
    recorded_estimates_ns: tuple[int, ...]
    """What each was charged in the record."""
    cold: bool
    """Some candidate had not been measured in what is stored: it is charged what the record first says."""

    @property
    def agrees(self) -> bool:
        """Whether every charge is the recorded one, to the nanosecond."""
        return self.candidate_estimates_ns == self.recorded_estimates_ns

    @property
    def differs(self) -> bool:
        """Whether the model would have chosen another graph."""
        return self.replayed_graph_name != self.graph_name

    @property
    def replayed_estimate_ns(self) -> int:
        """What the model charges the graph that it chooses."""
        return self.charged_ns(self.replayed_graph_name)

    def charged_ns(self, graph: str) -> int:
        """What the model charges a candidate."""
        return self.candidate_estimates_ns[self.candidate_graphs.index(graph)]

    def recorded_ns(self, graph: str) -> int:
        """What a candidate was charged in the record."""
        return self.recorded_estimates_ns[self.candidate_graphs.index(graph)]

    @property
    def margin(self) -> float | None:
        """Expected tokens per charged time of the model's choice over those of the next best, less 1."""
        rates = rates_of(self.candidate_expected_tokens, self.candidate_estimates_ns)
        chosen = self.candidate_graphs.index(self.replayed_graph_name)
        others = rates[:chosen] + rates[chosen + 1 :]
        return rates[chosen] / max(others) - 1 if others and max(others) > 0 else None


def knowledge_by_its_model(executions: Sequence[GraphExecution]) -> Knowledge:
    """As `knowledge_of`, but that the model in charge tells, if it is one of ours, by the charges that it gives again."""
    recorded = next((one.scheduler_cost_model for one in reversed(executions) if one.scheduler_cost_model), "")
    if recorded not in COST_MODELS or not may_be_at_once(executions):
        return knowledge_of(executions)
    before, at_once = (
        sum(
            estimate == charged
            for belief in believed_again(executions, cost_model_named(recorded), knowledge)
            for estimate, charged in zip(
                belief.estimates_ns, belief.execution.scheduler_candidate_estimates_ns, strict=False
            )
        )
        for knowledge in (Knowledge(at_once=False), Knowledge(at_once=True))
    )
    return Knowledge(at_once=at_once > before) if at_once != before else knowledge_of(executions)


def believed_again(
    executions: Iterable[GraphExecution], model: CostModel, knowledge: Knowledge | None = None
) -> Iterator[Belief]:
    """Each execution that was chosen from candidates, with what `model` charges them, knowing what was known then.

    `executions` are one engine's, in the order of submission. The model learns on the way. `knowledge` is what was
    known then; `None`: as the executions tell.
    """
    executions = tuple(executions)
    knowledge = knowledge or knowledge_of(executions)
    in_flight: deque[GraphExecution] = deque()
    submitted_before = 0
    for execution in executions:
        # The host planned once it had submitted the round before, and knew what it had observed by then.
        decided_at = submitted_before
        while in_flight and knowledge.has(execution, in_flight[0]):
            done = in_flight.popleft()
            decided_at = max(decided_at, observed_at(done))
            model.record(measurement_of(done, observed_at(done)))
        if execution.scheduler_candidate_graphs:
            believed = [model.estimate(graph, decided_at) for graph in execution.scheduler_candidate_graphs]
            yield Belief(execution, tuple(estimate and estimate.total_ns for estimate in believed))
        in_flight.append(execution)
        submitted_before = execution.started_at


def decisions_again(executions: Sequence[GraphExecution], model: CostModel, from_ns: int) -> Iterator[ReplayedDecision]:
    """The decisions submitted from `from_ns` on, taken again; the executions before only teach the model.

    A candidate that the model has not measured yet is charged what the record says at its first decision.
    Decisions whose candidates, estimates and expected tokens do not go together are left out.
    """
    first_ns: dict[str, int] = {}
    for execution, estimates_ns in believed_again(executions, model, knowledge_by_its_model(executions)):
        graphs, recorded_ns = execution.scheduler_candidate_graphs, execution.scheduler_candidate_estimates_ns
        if not can_be_taken_again(execution):
            continue
        for graph, recorded in zip(graphs, recorded_ns, strict=True):
            first_ns.setdefault(graph, recorded)
        if execution.started_at >= from_ns:
            charged_ns = tuple(
                first_ns[graph] if estimate is None else estimate
                for graph, estimate in zip(graphs, estimates_ns, strict=True)
            )
            yield taken_again(execution, charged_ns, cold=None in estimates_ns)


def can_be_taken_again(execution: GraphExecution) -> bool:
    """Whether the record says of every candidate what it was charged and what was expected of it."""
    graphs = execution.scheduler_candidate_graphs
    return (
        execution.graph_name in graphs
        and len(graphs) == len(execution.scheduler_candidate_estimates_ns)
        and len(graphs) == len(execution.scheduler_candidate_expected_tokens)
    )


def taken_again(execution: GraphExecution, charged_ns: tuple[int, ...], *, cold: bool) -> ReplayedDecision:
    """The decision of an execution under other charges, by the scheduler's own rule."""
    expected, graphs = execution.scheduler_candidate_expected_tokens, execution.scheduler_candidate_graphs
    ordinary = execution.graph_purpose == Purpose.ORDINARY
    return ReplayedDecision(
        execution.graph_sequence,
        execution.started_at,
        execution.graph_purpose,
        execution.graph_name,
        execution.graph_wall_time_ns,
        execution.scheduler_estimate_ns,
        graphs[best_candidate(expected, charged_ns)] if ordinary else execution.graph_name,
        graphs,
        charged_ns,
        expected,
        execution.scheduler_candidate_estimates_ns,
        cold,
    )
