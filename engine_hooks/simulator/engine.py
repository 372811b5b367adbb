"""The simulated engine: one device queue, one host thread, two submissions in flight.

For round i, with times on a virtual clock that starts at 0:

    plan_start_i = max(submit_{i-1}, end_{i-2} + notify), or end_{i-1} if round i-1 needs completion feedback
    submit_i     = plan_start_i + planning_i + delay_i
    start_i      = max(submit_i + launch, end_{i-1})
    end_i        = start_i + gpu_i

Completions are observed at the first moment after end + notify at which the host is not planning.
"""

from collections import deque
from collections.abc import Callable, Iterator

from engine_hooks.contract.execution import GraphExecution
from engine_hooks.contract.names import FeedbackReason, GraphKind, Purpose
from engine_hooks.cost_model.model import CostModel, Measurement
from engine_hooks.scheduler.decision import BatchState, Decision
from engine_hooks.scheduler.feedback import feedback_reason
from engine_hooks.scheduler.graphs import NO_DRAFTS, Graph
from engine_hooks.scheduler.scheduler import Scheduler
from engine_hooks.simulator.delays import Delay, PendingDelays
from engine_hooks.simulator.draws import Draws, Outcome
from engine_hooks.simulator.parameters import Conditions, Engine, Rounds, Scenario
from engine_hooks.simulator.recording import CellLabels, execution_of
from engine_hooks.simulator.submission import Submission
from engine_hooks.simulator.totals import Totals

FAR_NS = 2**62
NO_TOKENS: Outcome = (0, (), ())


class SimulatedEngine:
    """An engine under a scheduler, on a virtual clock.

    Deterministic: scenario, seed and cost model decide everything. `on_execution` is called
    with each execution as its completion is observed; without it none is made, which is
    faster. `pace` is called with the virtual time of each round before the round happens,
    and may wait there.
    """

    def __init__(
        self,
        scenario: Scenario,
        cost_model: CostModel,
        seed: int,
        *,
        on_execution: Callable[[GraphExecution], None] | None = None,
        labels: CellLabels | None = None,
        pace: Callable[[int], None] | None = None,
    ) -> None:
        """Args: see the class; `labels` go into the executions, with the calendar time of virtual time 0."""
        self.scenario = scenario
        self.scheduler = Scheduler(tuple(scenario.engine.graph_gpu_ns), cost_model, scenario.scheduler_settings)
        self.totals = Totals(has_speculative=any(g.verification_budget for g in scenario.engine.graph_gpu_ns))
        self.now_ns = 0
        """Virtual time of the last submission."""
        self.on_execution = on_execution
        self.pace = pace
        self._labels = labels or CellLabels()
        self._draws = Draws(scenario, seed)
        self._delays = PendingDelays(self._draws.delays)
        self._prefill = prefill_graph_of(scenario.engine)
        self._plain_outcome: Outcome = (scenario.engine.lanes, (), ())
        self._in_flight: deque[Submission] = deque()
        self._sequence = 0
        self._waits = False
        self._end_ns = self._end_before_ns = -FAR_NS
        self._after_idle = True
        self._phases = deque(scenario.phases)
        self._pauses = deque(scenario.pauses)
        self._tokens_to_prefill = (scenario.engine.request_tokens + 1) // 2 or FAR_NS
        self._next_prefill_ns = FAR_NS
        self._next_change_ns = 0
        self._meet_changes(0)

    def calibrate(self) -> int:
        """Run the start-up calibrations, if any are left, and forget their totals; the virtual time after them."""
        while self.scheduler.calibrating:
            self.step()
        if self._waits:  # the last one is still to be observed
            self.now_ns = self._end_ns + self.scenario.engine.notify_ns
            self._observe(self.now_ns)
        self.totals = Totals(has_speculative=self.totals.has_speculative)
        return self.now_ns

    def run(self, until_ns: int) -> Totals:
        """Plan and submit rounds up to virtual time `until_ns`; what was observed so far is in the totals."""
        step = self.step
        while self.now_ns < until_ns:
            step()
        return self.totals

    def executions(self, until_ns: int) -> Iterator[GraphExecution]:
        """The executions observed up to virtual time `until_ns`, one after another."""
        observed: deque[GraphExecution] = deque()
        self.on_execution = observed.append
        while self.now_ns < until_ns:
            self.step()
            while observed:
                yield observed.popleft()

    def delay_at(self, at_ns: int, duration_ns: int, rounds: Rounds = Rounds.ALL) -> None:
        """Let the host stumble in the first decoding round planned from virtual time `at_ns` on."""
        self._delays.add(Delay(at_ns, duration_ns, rounds))

    def step(self) -> None:
        """Plan and submit one round."""
        engine = self.scenario.engine
        plan_ns = (self._end_ns if self._waits else self._end_before_ns) + engine.notify_ns
        plan_ns = max(plan_ns, self.now_ns)
        if plan_ns >= self._next_change_ns:
            plan_ns = self._meet_changes(plan_ns)
        if self.pace is not None:
            self.pace(plan_ns)
        self._observe(plan_ns)
        if self._tokens_to_prefill <= 0 or plan_ns >= self._next_prefill_ns:
            self._submit_prefill(plan_ns)
            return
        decision = self.scheduler.choose(BatchState(plan_ns, engine.lanes))
        if decision.calibrates:
            self._submit_calibration(plan_ns, decision)
        else:
            self._submit_decode(plan_ns, decision)

    def _submit_calibration(self, plan_ns: int, decision: Decision) -> None:
        """A replay on a drained queue. Nothing is served yet, so the host is neither slow nor does it stumble."""
        self._submit(plan_ns + int(self._draws.planning_ns()), decision.graph, decision, None, NO_TOKENS)
        self._waits = True

    def _submit_decode(self, plan_ns: int, decision: Decision) -> None:
        graph, drafts = decision.graph, decision.drafts
        submit_ns = plan_ns + self._planning_ns(graph)
        if plan_ns >= self._delays.next_at_ns:
            submit_ns += self._delays.meet(plan_ns, speculative=graph.verification_budget is not None)
        outcome = self._plain_outcome if drafts is NO_DRAFTS else self._draws.outcomes.next(drafts)
        self._submit(submit_ns, graph, decision, self._decode_feedback, outcome)

    def _submit_prefill(self, plan_ns: int) -> None:
        if plan_ns >= self._next_prefill_ns:
            self._next_prefill_ns += int(1e9 / self._conditions.prefill_rate_hz)
        else:
            self._tokens_to_prefill += self.scenario.engine.request_tokens
        reason = feedback_reason(GraphKind.PREFILL)
        self._submit(plan_ns + int(self._draws.planning_ns()), self._prefill, None, reason, NO_TOKENS)

    def _submit(
        self,
        submit_ns: int,
        graph: Graph,
        decision: Decision | None,
        feedback: FeedbackReason | None,
        outcome: Outcome,
    ) -> None:
        """Put a round on the device's queue."""
        previous_end_ns = self._end_ns
        start_ns = submit_ns + self.scenario.engine.launch_ns
        start_ns = max(start_ns, previous_end_ns)
        gpu_ns = int(self._gpu_ns[graph] * self._draws.gpu_noise())
        idle_from_ns = submit_ns if self._after_idle else previous_end_ns
        end_ns = start_ns + gpu_ns
        self._in_flight.append(
            Submission(
                self._sequence,
                graph,
                decision,
                submit_ns,
                start_ns,
                end_ns,
                end_ns - idle_from_ns,
                0 if submit_ns >= previous_end_ns else 1,
                self._after_idle,
                feedback,
                outcome,
            )
        )
        self._sequence += 1
        self._after_idle = False
        self._waits = feedback is not None
        self._end_before_ns = previous_end_ns
        self._end_ns = end_ns
        self.now_ns = submit_ns

    def _observe(self, now_ns: int) -> None:
        """Take in the completions that the host sees before it plans at `now_ns`."""
        in_flight, notify_ns = self._in_flight, self.scenario.engine.notify_ns
        while in_flight and in_flight[0].ended_ns + notify_ns <= now_ns:
            done = in_flight.popleft()
            observed_ns = max(done.ended_ns + notify_ns, self.now_ns)
            decision = done.decision
            purpose = Purpose.ORDINARY if decision is None else decision.purpose
            self.scheduler.record(
                Measurement(
                    done.graph.name,
                    done.ended_ns - done.started_ns,
                    done.wall_time_ns,
                    done.queue_depth == 0,
                    done.feedback is not None,
                    purpose,
                    observed_ns,
                    done.after_idle,
                    observed_ns - done.submitted_ns,
                ),
                done.outcome[1],
                done.outcome[2],
            )
            self._tokens_to_prefill -= done.outcome[0]
            self.totals.add(done.graph.kind, purpose, done.wall_time_ns, done.outcome[0])
            if self.on_execution is not None:
                self.on_execution(execution_of(done, observed_ns, self.scenario.engine, self._labels, self.scheduler))

    def _planning_ns(self, graph: Graph) -> int:
        slow_ns = self._slow_planning_ns.get(graph)
        return int(self._draws.planning_ns()) if slow_ns is None else int(slow_ns * self._draws.slow_planning())

    def _meet_changes(self, plan_ns: int) -> int:
        """Enter the phases and pauses that have come; when to plan, now."""
        while self._phases and self._phases[0].from_ns <= plan_ns:
            phase = self._phases.popleft()
            self._enter(phase.conditions, phase.from_ns)
        if self._pauses and self._pauses[0].at_ns <= plan_ns:
            pause = self._pauses.popleft()
            plan_ns = max(pause.at_ns + pause.duration_ns, self._end_ns + self.scenario.engine.notify_ns)
            self._after_idle = True
        self._next_change_ns = min(
            [phase.from_ns for phase in self._phases] + [p.at_ns for p in self._pauses] + [FAR_NS]
        )
        return plan_ns

    def _enter(self, conditions: Conditions, from_ns: int) -> None:
        self._conditions = conditions
        self._draws.outcomes.accept_at(conditions.acceptance)
        self._decode_feedback = feedback_reason(GraphKind.PLAIN_DECODE, grammar_lanes=conditions.grammar_lanes)
        rate_hz = conditions.prefill_rate_hz
        self._next_prefill_ns = from_ns + int(1e9 / rate_hz) if rate_hz else FAR_NS
        self._gpu_ns = graph_gpu_ns_under(self.scenario.engine, conditions, self._draws.gpu_speed)
        self._slow_planning_ns = slow_planning_ns(conditions, self._gpu_ns)


def prefill_graph_of(engine: Engine) -> Graph:
    """The graph of this engine's prefills."""
    return Graph(engine.prefill_graph, GraphKind.PREFILL)


def graph_gpu_ns_under(engine: Engine, conditions: Conditions, gpu_speed: float) -> dict[Graph, float]:
    """Mean device time of each graph under these conditions."""
    graphs = {**engine.graph_gpu_ns, prefill_graph_of(engine): engine.prefill_ns}
    factor = gpu_speed * conditions.gpu_factor
    return {graph: ns * factor * conditions.graph_gpu_factor.get(graph.name, 1.0) for graph, ns in graphs.items()}


def slow_planning_ns(conditions: Conditions, gpu_ns: dict[Graph, float]) -> dict[Graph, float]:
    """How long the host plans each graph where these conditions say so."""
    slow_ns = {
        graph: conditions.host_planning_ns or conditions.host_factor * ns
        for graph, ns in gpu_ns.items()
        if (conditions.host_planning_ns or conditions.host_factor)
        and graph.kind != GraphKind.PREFILL
        and (graph.verification_budget or conditions.host_rounds == Rounds.ALL)
        and (not conditions.host_graphs or graph.name in conditions.host_graphs)
    }
    own_ns = conditions.graph_planning_ns
    return slow_ns | {graph: float(own_ns[graph.name]) for graph in gpu_ns if graph.name in own_ns}
