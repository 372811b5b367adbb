"""The background half of the recorder: one thread that empties the buffer into an exporter."""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import Final

from opentelemetry.context import _SUPPRESS_INSTRUMENTATION_KEY, attach, set_value
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from engine_hooks.contract.execution import GraphExecution
from engine_hooks.errors import ContractError
from engine_hooks.recorder.spans import SpanBuilder

logger = logging.getLogger(__name__)

BATCH_SPANS_MAX: Final = 512
"""Spans a request. About 300 KB, well below gRPC's default limit of 4 MiB."""

_GIVE_UP_S: Final = 1.0
"""How long an exporter that was told to shut down may take to return."""


class LossReason(StrEnum):
    """Why a record was not delivered."""

    BUFFER_FULL = "buffer_full"
    """The collector was away or slow for longer than the buffer lasts."""
    EXPORT_FAILED = "export_failed"
    """The exporter gave a batch up: its timeout passed, or the collector refused it for good."""
    NOT_ENCODABLE = "not_encodable"
    """OTLP cannot carry the record: see `spans.readable_span`."""
    STOPPED = "stopped"
    """Recorded after `stop`, or still waiting when its timeout passed."""


def give_way() -> None:
    """Lets another thread that waits for the interpreter have it now."""
    time.sleep(0)


class CourteousBatch(list[ReadableSpan]):
    """A batch that lets the engine's thread run between any two spans while an exporter encodes it.

    Encoding is pure Python. Without this a thread that comes back from the device waits for the
    interpreter until its switch interval (5 ms) is over: the recorder would make the very stumbles it records.
    """

    def __iter__(self) -> Iterator[ReadableSpan]:
        for span in super().__iter__():
            give_way()
            yield span


class Delivery:
    """Takes records out of a buffer, in batches, builds spans and exports them.

    Belongs to one process; a forked child needs another. The buffer is shared with the thread that
    records; everything else is the delivery's own.
    """

    def __init__(
        self,
        buffer: deque[GraphExecution],
        builder: SpanBuilder,
        open_exporter: Callable[[], SpanExporter],
        interval_s: float,
    ) -> None:
        self.losses = dict.fromkeys(LossReason, 0)
        self.exported = 0
        self.exporter: SpanExporter | None = None
        self._buffer = buffer
        self._builder = builder
        self._open_exporter = open_exporter
        self._interval_s = interval_s
        self._turn = threading.Condition()
        self._stopping = False
        self._flushes_asked = 0
        self._flushes_done = 0
        self._thread = threading.Thread(target=self._run, name="tachograph-recorder", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def flush(self, timeout_s: float) -> bool:
        """Waits until all that is in the buffer now was exported or given up; false if the timeout passed first."""
        with self._turn:
            self._flushes_asked += 1
            asked = self._flushes_asked
            self._turn.notify_all()
            return self._turn.wait_for(lambda: self._flushes_done >= asked, timeout_s)

    def stop(self, timeout_s: float) -> bool:
        """Exports what is left and ends the thread; false if records were still waiting when the timeout passed."""
        with self._turn:
            self._stopping = True
            self._turn.notify_all()
        self._thread.join(timeout_s)
        finished = not self._thread.is_alive()
        if not finished:
            self._abandon()
        return finished

    def _abandon(self) -> None:
        self.losses[LossReason.STOPPED] += len(self._take(len(self._buffer)))
        self._close_exporter()  # makes a waiting export return
        self._thread.join(_GIVE_UP_S)

    def _close_exporter(self) -> None:
        with self._turn:
            exporter, self.exporter = self.exporter, None
        if exporter is not None:
            exporter.shutdown()

    # ---- the background thread

    def _run(self) -> None:
        attach(set_value(_SUPPRESS_INSTRUMENTATION_KEY, True))  # the export must not trace itself
        self.exporter = self._opened()
        while not self._stopping:
            asked = self._await_turn()
            self._drain()
            with self._turn:
                self._flushes_done = asked
                self._turn.notify_all()
        self._drain()
        self._close_exporter()

    def _opened(self) -> SpanExporter | None:
        try:
            return self._open_exporter()
        except Exception as error:  # whatever an exporter's own settings make it raise, the engine goes on
            logger.error("no graph execution can be sent: %s", error)  # noqa: TRY400
            return None

    def _await_turn(self) -> int:
        """Sleeps one interval, less if there is a flush to serve or an end to come."""
        with self._turn:
            self._turn.wait_for(lambda: self._stopping or self._flushes_asked > self._flushes_done, self._interval_s)
            return self._flushes_asked

    def _drain(self) -> None:
        """Everything in the buffer now; what comes in meanwhile waits for the next turn."""
        waiting = len(self._buffer)
        while waiting > 0 and (batch := self._take(min(waiting, BATCH_SPANS_MAX))):
            self._export(self._spans(batch))
            waiting -= len(batch)

    def _take(self, count: int) -> list[GraphExecution]:
        batch: list[GraphExecution] = []
        try:
            while len(batch) < count:
                batch.append(self._buffer.popleft())
        except IndexError:  # the rest was taken by whoever stops
            pass
        return batch

    def _spans(self, executions: list[GraphExecution]) -> CourteousBatch:
        spans = CourteousBatch()
        for execution in executions:
            give_way()
            try:
                spans.append(self._builder.build(execution))
            except ContractError:
                self.losses[LossReason.NOT_ENCODABLE] += 1
        return spans

    def _export(self, spans: list[ReadableSpan]) -> None:
        if not spans:
            return
        exporter = self.exporter
        if exporter is not None and _succeeds(exporter, spans):
            self.exported += len(spans)
        else:
            self.losses[LossReason.EXPORT_FAILED] += len(spans)


def _succeeds(exporter: SpanExporter, spans: list[ReadableSpan]) -> bool:
    try:
        return exporter.export(spans) is SpanExportResult.SUCCESS
    except Exception:
        logger.exception("the exporter failed on %d graph executions", len(spans))
        return False
