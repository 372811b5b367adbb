"""What an engine holds: submissions that are recorded as they are made."""

import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Final, Generic, Protocol, Self

from engine_hooks.adapters.device.event_source import EventSource, EventT
from engine_hooks.adapters.device.losses import DeviceLoss, Losses
from engine_hooks.adapters.device.pairs import EventPair
from engine_hooks.adapters.device.tracker import ExecutionTracker, Times, TrackerSettings
from engine_hooks.contract.execution import GraphExecution
from engine_hooks.contract.names import GraphKind
from engine_hooks.recorder.clock import Calendar

CLOSING_POLL_S: Final = 0.001

Observed = Callable[[GraphExecution, int], object]
"""Takes an execution and when its end was observed, in ns on the host's monotonic clock."""


class Replayable(Protocol):
    """A graph that was captured: `torch.cuda.CUDAGraph`, or `QueueGraph` on a CPU."""

    def replay(self) -> object:
        """Submit it to the current stream."""


class DeviceExecutions(Generic[EventT]):
    """Records every execution of one device, timed by events on the stream it runs on.

    One thread at a time. Wrap each graph (`graph`) or stretch of work (`measured`), call
    `poll` once a step and `idle` when there is no work. None of this waits for the device,
    raises for it, or makes events while the engine runs; `losses` counts what was not measured.
    """

    def __init__(
        self,
        source: EventSource[EventT],
        record: Callable[[GraphExecution], object],
        *,
        settings: TrackerSettings | None = None,
        observed: Observed | None = None,
        clock_ns: Callable[[], int] = time.monotonic_ns,
        unix_clock_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        """Makes the pool of events.

        Args:
            source: The device.
            record: Takes each execution: `Recorder.record`.
            settings: Bounds of the pool.
            observed: Is called with each execution as well, and the instant at which its end was observed on
                `clock_ns`: what an embedded scheduler learns from (`cost_model.measurement_of`).
            clock_ns: The host's monotonic clock.
            unix_clock_ns: The host's calendar, in Unix time.
        """
        self._tracker = ExecutionTracker(source, settings, clock_ns)
        self._clock_ns = clock_ns
        self._source_name = source.gpu_time_source
        self._record = record
        self._observed = observed
        self._calendar = Calendar(clock_ns, unix_clock_ns)
        self._record_losses = Losses()

    def graph(self, graph: Replayable, name: str, kind: GraphKind) -> "RecordedGraph[EventT]":
        """The graph, recorded at each replay."""
        return RecordedGraph(self, graph, name, kind)

    def measured(self, name: str, kind: GraphKind, fields: Mapping[str, Any] | None = None) -> EventPair[EventT]:
        """`with executions.measured(…):` around any stretch of work on the current stream, to be entered at once.

        Args:
            name: The graph's name.
            kind: What it computes.
            fields: Further fields of the `GraphExecution`, read when it is polled. More may be added to the mapping
                until then, as tokens become known.
        """
        return self._tracker.begin(name, kind, fields)

    def idle(self) -> None:
        """The engine has run out of work: call it when the last results are in, before waiting for requests."""
        self._tracker.idle()
        self.poll()  # what was in flight is placed as what came before it was
        self._calendar.look(self._clock_ns(), idle=True)

    def poll(self, until: int | None = None) -> int:
        """Record what has ended since the last poll; how many executions that were.

        Args:
            until: A sequence (`EventPair.sequence`): later ones are left for another poll, because the engine
                has not taken in their results yet.
        """
        self._calendar.look(self._clock_ns())
        count = 0
        for pair, times in self._tracker.completed(until):
            try:
                execution = self._execution(pair, times)
                self._record(execution)
                if self._observed is not None:
                    self._observed(execution, times.observed_ns)
                count += 1
            except Exception as error:
                self._record_losses.count(DeviceLoss.RECORD_FAILED, error)
        return count

    def close(self, timeout_s: float = 1.0) -> bool:
        """Record what is still in flight; false if not all of it had ended when the timeout passed."""
        deadline = time.monotonic() + timeout_s
        self.poll()
        while self.in_flight and time.monotonic() < deadline:
            time.sleep(CLOSING_POLL_S)
            self.poll()
        return not self.in_flight

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def in_flight(self) -> int:
        """Executions that were submitted and not yet seen to end."""
        return self._tracker.in_flight

    @property
    def losses(self) -> Mapping[DeviceLoss, int]:
        """How many executions were not measured or not recorded, by reason."""
        record_failed = self._record_losses.by_reason()[DeviceLoss.RECORD_FAILED]
        return {**self._tracker.losses, DeviceLoss.RECORD_FAILED: record_failed}

    @property
    def anchor_uncertainty_ns(self) -> int | None:
        """How far off `graph_gpu_start_offset_ns` may be; `None` while there is no anchor."""
        return self._tracker.anchor_uncertainty_ns

    def replay(
        self, graph: Replayable, name: str, kind: GraphKind, fields: Mapping[str, Any] | None
    ) -> EventPair[EventT]:
        """Replay a graph between a pair of events. Raises what the replay raises."""
        tracker = self._tracker
        pair = tracker.begin(name, kind, fields)
        try:
            graph.replay()
        except BaseException:
            tracker.abandon(pair)
            raise
        tracker.end(pair)
        return pair

    def _execution(self, pair: EventPair[EventT], times: Times) -> GraphExecution:
        return GraphExecution(
            graph_name=pair.graph_name,
            graph_kind=pair.graph_kind,
            graph_sequence=pair.sequence,
            graph_gpu_time_ns=times.gpu_time_ns,
            graph_wall_time_ns=times.wall_time_ns,
            started_at=self._calendar.unix_of(times.submitted_ns),
            duration_ns=times.observed_ns - times.submitted_ns,
            graph_gpu_start_offset_ns=times.gpu_start_offset_ns,
            graph_gpu_time_source=self._source_name,
            graph_queue_depth=pair.queue_depth,
            graph_after_idle=pair.after_idle,
            **(pair.fields or {}),
        )


class RecordedGraph(Generic[EventT]):
    """A captured graph whose replays are recorded; everything else is the graph's own."""

    def __init__(self, executions: DeviceExecutions[EventT], graph: Replayable, name: str, kind: GraphKind) -> None:
        self._executions = executions
        self._graph = graph
        self.name = name
        self.kind = kind

    def replay(self, fields: Mapping[str, Any] | None = None) -> EventPair[EventT]:
        """Submit it, as the graph itself would. Raises what the graph raises.

        Args:
            fields: As in `DeviceExecutions.measured`.
        """
        return self._executions.replay(self._graph, self.name, self.kind, fields)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._graph, name)
