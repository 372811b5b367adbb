"""The engine: the host's loop over two submissions in flight, under the embedded scheduler."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from engine_hooks.adapters.device.executions import DeviceExecutions, RecordedGraph
from engine_hooks.adapters.torch_cpu.device_queue import DeviceQueue, QueueEvent, QueueGraph
from engine_hooks.adapters.torch_cpu.event_source import QueueEventSource
from engine_hooks.contract.execution import GraphExecution
from engine_hooks.contract.names import FeedbackReason, GraphKind
from engine_hooks.cost_model.model import CostModel, measurement_of
from engine_hooks.scheduler.acceptance import depth_counts
from engine_hooks.scheduler.decision import BatchState, Decision
from engine_hooks.scheduler.feedback import feedback_reason
from engine_hooks.scheduler.graphs import Graph
from engine_hooks.scheduler.scheduler import Scheduler, SchedulerSettings
from engine_hooks.torch_demo.errors import DemoError
from engine_hooks.torch_demo.host_delay import HostDelays
from engine_hooks.torch_demo.lanes import Lanes
from engine_hooks.torch_demo.requests import Request, requests
from engine_hooks.torch_demo.totals import Totals
from engine_hooks.torch_demo.tuning import Tuning

IN_FLIGHT_MAX: Final = 2
CALIBRATION_EXECUTIONS: Final = 9
"""Of each graph. More than the scheduler's three: half of three are easily spoilt on a machine with other work."""
ROUND_WITHIN_S: Final = 30.0


@dataclass
class Round:
    """One submission on its way."""

    sequence: int
    """Of its execution; -1 where that is not measured."""
    drafts: Sequence[int]
    """Of each lane of `requests`."""
    requests: Sequence[Request]
    """By lane, as they were at submission. A lane that gets another request meanwhile gives that one nothing."""
    calibrates: bool
    feedback: FeedbackReason | None
    fields: dict[str, Any]
    """Of its `GraphExecution`."""
    done: QueueEvent
    stumbled: bool = False
    """The host stumbled before it, as it was asked to."""
    accepted: Sequence[int] = ()
    """Of each lane, once it was taken in."""


class SpeculativeEngine:
    """Decodes requests without end, four at a time, by whichever graph the scheduler chooses.

    The batch lives on the device, so that a round is submitted before the one before it is
    known on the host: two are in flight. A prefill is waited for, as its first token decides
    on the host whether the request goes on.
    """

    def __init__(
        self,
        lanes: Lanes,
        queue: DeviceQueue,
        tuning: Tuning,
        cost_model: CostModel,
        record: Callable[[GraphExecution], object],
        *,
        seed: int,
        delays: HostDelays,
        labels: Mapping[str, Any] | None = None,
        deliver: Callable[[Request], object] = lambda _request: None,
    ) -> None:
        """Args: `labels` are fields of every `GraphExecution`; `deliver` takes each request once it is finished."""
        self.totals = Totals()
        self.graphs = (
            Graph("decode", GraphKind.PLAIN_DECODE),
            Graph(f"P{lanes.count * (tuning.drafts + 1)}", GraphKind.SPECULATIVE, lanes.count * (tuning.drafts + 1)),
        )
        settings = SchedulerSettings(CALIBRATION_EXECUTIONS, acceptance_prior=tuning.acceptance)
        self.scheduler = Scheduler(self.graphs, cost_model, settings)
        self.executions = DeviceExecutions(
            QueueEventSource(queue), record, observed=self._learn, clock_ns=queue.clock_ns
        )
        self._lanes = lanes
        self._queue = queue
        self.tuning = tuning
        self.delays = delays
        self.charged_before_stumble_ns: dict[str, int] = {}
        """What the scheduler charged each graph when the host first stumbled as asked; empty where it has not."""
        self.charged_after_stumble_ns: dict[str, int] = {}
        """The same once it had learnt from the round that the stumble met."""
        self.ran_s = 0.0
        """How long it ran, once it has ended."""
        self._labels = dict(labels or {})
        self._deliver = deliver
        self._drafts_of = {self.graphs[0].name: 0, self.graphs[1].name: tuning.drafts}
        self._recorded: dict[str, RecordedGraph[QueueEvent]] = {
            graph.name: self._captured(graph, self._drafts_of[graph.name]) for graph in self.graphs
        }
        # A request ends before its lane reaches the last position, however late the host sees it.
        tokens_max = lanes.model.shape.positions - 64
        self._supply = requests(seed, lanes.model.shape.vocabulary, tokens_max)
        self._batch: list[Request | None] = [None] * lanes.count
        self._in_flight: deque[Round] = deque()
        self._events = deque(queue.new_event() for _ in range(IN_FLIGHT_MAX))
        self._taken_in: Round | None = None
        self._sequence = -1
        self._began_ns = 0

    def run(self, seconds: float, stopping: Callable[[], bool], tick: Callable[[], object] = lambda: None) -> None:
        """Run for so many seconds (0: without end) or until stopped, then finish what is in flight.

        Raises:
            DemoError: the device queue is stuck.
            DeviceQueueError: work on it failed.
        """
        while self.scheduler.calibrating:
            self.step()
        self._began_ns = self._queue.clock_ns()
        until_s = seconds or float("inf")
        while self.elapsed_s < until_s and not stopping():
            self.step()
            tick()
        while self._in_flight:
            self._take_in()
        self.ran_s = self.elapsed_s
        self.executions.close()

    @property
    def now_ns(self) -> int:
        """On the clock that it runs by."""
        return self._queue.clock_ns()

    @property
    def elapsed_s(self) -> float:
        """Since the first round after calibration."""
        return (self._queue.clock_ns() - self._began_ns) / 1e9

    def charged_ns(self) -> dict[str, int]:
        """What the scheduler charges each graph now, GPU time + handoff."""
        estimates = {graph.name: self.scheduler.cost_model.estimate(graph.name, self.now_ns) for graph in self.graphs}
        return {name: estimate.total_ns for name, estimate in estimates.items() if estimate is not None}

    def step(self) -> None:
        """Plan and submit one round, once there is room for it."""
        while len(self._in_flight) >= IN_FLIGHT_MAX or (self._in_flight and self._waits(self._in_flight[-1])):
            self._take_in()
        free_lane = next((n for n, request in enumerate(self._batch) if request is None or request.finished), None)
        if free_lane is not None and not self.scheduler.calibrating:
            self._submit_prefill(free_lane)
            return
        decision = self.scheduler.choose(BatchState(self._queue.clock_ns(), self._lanes.count))
        while decision.calibrates and self._in_flight:
            self._take_in()
        speculates = bool(decision.graph.verification_budget) and not decision.calibrates
        stumbled = speculates and self.delays.meet(self.elapsed_s)
        if stumbled:
            self.totals.mark_stumble()
            self.charged_before_stumble_ns = self.charged_before_stumble_ns or self.charged_ns()
        self._submit_decode(decision, stumbled=stumbled)

    def _submit_decode(self, decision: Decision, *, stumbled: bool) -> None:
        # A calibration verifies drafts of nobody's; what becomes of them says nothing.
        drafts = [0 if decision.calibrates else self._drafts_of[decision.graph.name]] * self._lanes.count
        fields = {
            **self._labels,
            "graph_purpose": decision.purpose,
            "batch_lanes": self._lanes.count,
            "batch_tokens_drafted": sum(drafts),
            "batch_verification_budget": decision.graph.verification_budget,
            **decision.span_fields(),
        }
        pair = self._recorded[decision.graph.name].replay(fields)
        batch = [request for request in self._batch if request is not None]
        self._in_flight.append(
            Round(pair.sequence, drafts, batch, decision.calibrates, None, fields, self._done_event(), stumbled)
        )

    def _submit_prefill(self, lane: int) -> None:
        request = self._batch[lane] = next(self._supply)
        reason = feedback_reason(GraphKind.PREFILL)
        fields = {
            **self._labels,
            "graph_completion_feedback": True,
            "graph_completion_feedback_reason": reason,
            "batch_lanes": 1,
            "scheduler_cost_model": self.scheduler.cost_model.name,
        }
        with self.executions.measured("prefill", GraphKind.PREFILL, fields) as pair:
            self._queue.submit(partial(self._lanes.prefill, lane, request.prompt, request.seed))
        self._in_flight.append(Round(pair.sequence, [0], [request], False, reason, fields, self._done_event()))

    def _done_event(self) -> QueueEvent:
        """An event that fires when what was submitted so far has ended."""
        done = self._events.popleft()
        self._queue.record(done)
        return done

    def _waits(self, last: Round) -> bool:
        return last.calibrates or last.feedback is not None

    def _take_in(self) -> None:
        """Wait for the oldest round, take its results in, and let it be recorded."""
        done = self._in_flight.popleft()
        if not done.done.wait(ROUND_WITHIN_S):
            raise DemoError(f"a round has not ended for {ROUND_WITHIN_S:.0f} s: the device queue is stuck")
        self._events.append(done.done)
        self._queue.check()
        outcome = self._lanes.outcomes.popleft()
        emitted = 0
        done.accepted = () if done.calibrates else outcome.accepted
        if not done.calibrates:
            for request, tokens, accepted in zip(done.requests, outcome.tokens, outcome.accepted, strict=True):
                emitted += (kept := request.take(tokens[: accepted + 1]))
                if kept and request.finished:
                    self._deliver(request)
        done.fields["batch_tokens_accepted"] = sum(done.accepted)
        done.fields["batch_tokens_emitted"] = emitted
        self._taken_in = done
        self._sequence = max(self._sequence, done.sequence)
        self.executions.poll(until=self._sequence)

    def _learn(self, execution: GraphExecution, observed_ns: int) -> None:
        """The scheduler learns from each execution that was measured."""
        done = self._taken_in
        verified = done is not None and done.sequence == execution.graph_sequence and any(done.drafts)
        counts = depth_counts(done.drafts, done.accepted) if done is not None and verified else ((), ())
        self.scheduler.record(measurement_of(execution, observed_ns), *counts)
        if execution.scheduler_estimate_ns is not None or execution.graph_kind == GraphKind.PREFILL:
            stumbled = done is not None and done.sequence == execution.graph_sequence and done.stumbled
            self.totals.add(execution, stumbled=stumbled)
            if stumbled:
                self.charged_after_stumble_ns = self.charged_after_stumble_ns or self.charged_ns()
        else:
            self.totals.calibrations += 1

    def _captured(self, graph: Graph, drafts: int) -> RecordedGraph[QueueEvent]:
        work = QueueGraph(self._queue, partial(self._lanes.decode, drafts))
        return self.executions.graph(work, graph.name, graph.kind)
