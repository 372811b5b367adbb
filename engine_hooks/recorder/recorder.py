"""The recorder.

The engine's thread appends a record to a bounded buffer and goes on. A background thread takes
them out in batches, encodes them as OTLP and sends them. While the collector is away they wait there, and the
thread tries again, ever later up to some 10 s. Nothing the collector does reaches the engine.

What does not get through is counted in `losses`, and stands in the stored data as a gap of
`graph.sequence`. In a full buffer the oldest record makes room. What a collector refuses for good is not sent
again; what it refuses by partial success is counted too, save that a stock exporter handed in does not pass that on.
"""

import atexit
import logging
import os
import threading
import weakref
from collections import deque
from collections.abc import Mapping
from functools import partial
from multiprocessing import parent_process
from multiprocessing.util import Finalize
from types import TracebackType
from typing import Final, Self

from opentelemetry.sdk.trace.export import SpanExporter

from engine_hooks.contract.execution import EngineResource, GraphExecution
from engine_hooks.errors import ContractError, RecorderError, SendError
from engine_hooks.recorder.client import open_client
from engine_hooks.recorder.delivery import Delivery
from engine_hooks.recorder.encoder import BATCH_SPANS_MAX, RequestEncoder
from engine_hooks.recorder.losses import LossReason, in_words
from engine_hooks.recorder.outlets import ExporterOutlet, OtlpOutlet, Outlet
from engine_hooks.recorder.spans import SpanBuilder

logger = logging.getLogger(__name__)


class Recorder:
    """Records the graph executions of one engine instance.

    It starts by itself at the first record, in a forked child anew (with an empty buffer and its
    own counts), and stops at interpreter exit. One thread records; any thread may call the rest.
    """

    def __init__(
        self,
        resource: EngineResource,
        *,
        exporter: SpanExporter | None = None,
        grpc_endpoint: str | None = None,
        capacity: int = 32_768,
        interval_s: float = 1.0,
        exit_timeout_s: float = 5.0,
    ) -> None:
        """Sets up; starts nothing.

        Args:
            resource: the engine instance that every record comes from.
            exporter: any exporter of the SDK, which spans are built for: dearer than the recorder's own way out,
                OTLP by the variables `OTEL_EXPORTER_OTLP_*`. It is used, and shut down, as it is.
            grpc_endpoint: a collector to send to over gRPC in place of the one that the variables name.
            capacity: records that wait at most, those of a request under way included, about 1 KB each.
            interval_s: seconds between two exports; a record waits at most so long, less where so many come that they
                fill a request sooner. Not 0.
            exit_timeout_s: seconds that interpreter exit may spend on all that still waits; 0 drops it.

        Raises:
            RecorderError: an argument or a variable `OTEL_EXPORTER_OTLP_*` has no valid value.
        """
        if exporter is not None and grpc_endpoint is not None:
            raise RecorderError("a recorder sends to an exporter or to a gRPC endpoint, not to both")
        if capacity < 1 or interval_s <= 0 or exit_timeout_s < 0:
            raise RecorderError("a recorder needs capacity >= 1, interval_s > 0 and exit_timeout_s >= 0")
        # Opened at once: settings are refused here, and its libraries import neither while the interpreter
        # ends nor half-way when a process forks.
        opened = _open_outlet(resource, exporter, grpc_endpoint)
        self._reopen_outlet = partial(_open_outlet, resource, exporter, grpc_endpoint)
        self._capacity = capacity
        self._interval_s = interval_s
        self._exit_timeout_s = exit_timeout_s
        self._buffer: deque[GraphExecution] = deque()
        self._room = 0
        """Up to so many in the buffer there is room whatever is under way; beyond, the delivery has a look."""
        self._started = self._stopped = False
        self._life = threading.Lock()
        self._delivery = Delivery(self._buffer, lambda: opened, interval_s, capacity)
        _RECORDERS.add(self)

    def record(self, execution: GraphExecution) -> None:
        """Takes one execution, in well under a microsecond. Never blocks the engine."""
        if len(self._buffer) < self._room:
            self._buffer.append(execution)
        else:
            self._record_without_room(execution)

    def start(self) -> None:
        """Starts the background thread, which the first record does too. Calling it again is harmless."""
        with self._life:
            if self._started or self._stopped:
                return
            self._delivery.start()
            self._started = True
            self._room = self._capacity - BATCH_SPANS_MAX
        atexit.register(self._at_exit)
        if parent_process() is not None:
            # Children of multiprocessing leave without atexit.
            Finalize(None, self._at_exit, exitpriority=0)

    def flush(self, timeout_s: float = 5.0) -> bool:
        """Waits until all that was recorded is exported or given up; false if the timeout passed first."""
        return not self._started or self._stopped or self._delivery.flush(timeout_s)

    def stop(self, timeout_s: float = 5.0) -> bool:
        """Exports what is in the buffer and ends; false if records were still waiting when the timeout passed.

        A stopped recorder counts every further record as lost. Calling it again is harmless.
        """
        with self._life:
            first, self._stopped, self._room = not self._stopped, True, 0
        if not (first and self._started):
            return True
        atexit.unregister(self._at_exit)
        finished = self._delivery.stop(timeout_s)
        if lost := in_words(self.losses):
            logger.warning("graph executions lost: %s", lost)
        return finished

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def losses(self) -> Mapping[LossReason, int]:
        """How many records were lost in this process, by reason.

        Those of `STOPPED` were not acknowledged: the collector may have them all the same.
        """
        return self._delivery.losses

    @property
    def exported(self) -> int:
        """How many records the collector has acknowledged in this process."""
        return self._delivery.exported

    def _record_without_room(self, execution: GraphExecution) -> None:
        """Not started yet, or stopped, or full or nearly so."""
        if not self._started:
            self._start_if_possible()
        if self._started and not self._stopped:
            self._delivery.take_in(execution)
        else:
            self._delivery.too_late += 1

    def _start_if_possible(self) -> None:
        try:
            self.start()
        except RuntimeError:  # no thread can be started any more: the interpreter is ending
            logger.warning("a graph execution came too late to be recorded: the interpreter is ending")

    def _at_exit(self) -> None:
        self.stop(self._exit_timeout_s)

    def after_fork_in_child(self) -> None:
        """Starts afresh: the parent delivers its own records, and its thread and locks are dead here."""
        _INHERITED.append(self._delivery)
        self._buffer = deque()
        self._room = 0
        self._started = False
        self._life = threading.Lock()
        self._delivery = Delivery(self._buffer, self._reopen_outlet, self._interval_s, self._capacity)


def _open_outlet(resource: EngineResource, exporter: SpanExporter | None, grpc_endpoint: str | None) -> Outlet:
    """Where records go; a forked child opens it anew.

    Raises:
        RecorderError: a variable or the resource cannot be used.
    """
    if exporter is not None:
        return ExporterOutlet(SpanBuilder(resource), exporter)
    try:
        return OtlpOutlet(RequestEncoder(resource), open_client(grpc_endpoint))
    except (SendError, ContractError) as error:
        raise RecorderError(str(error)) from error


_RECORDERS: Final[weakref.WeakSet[Recorder]] = weakref.WeakSet()

_INHERITED: Final[list[Delivery]] = []
"""Deliveries of the parent, never used nor closed here: their threads did not survive the fork."""


def _after_fork_in_child() -> None:
    for recorder in list(_RECORDERS):
        recorder.after_fork_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
