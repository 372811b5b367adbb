"""Where the background thread delivers records: our own OTLP client, or any span exporter of the SDK."""

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Protocol

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from engine_hooks.contract.execution import GraphExecution
from engine_hooks.errors import ContractError
from engine_hooks.recorder.client import OtlpClient
from engine_hooks.recorder.connection import NotTakenError
from engine_hooks.recorder.encoder import Request, RequestEncoder
from engine_hooks.recorder.losses import LossReason
from engine_hooks.recorder.spans import SpanBuilder

logger = logging.getLogger(__name__)

SPANS_BETWEEN_WAYS: Final = 8
"""Spans encoded between two chances for the engine: about 80 us. One for each span would cost more than the span."""
_REASONS_LOGGED_MAX: Final = 32
"""Different words of a collector that are logged; it may count in them."""


GoesOn = Callable[[Exception], bool]
"""Told of each attempt that failed; whether to make another one."""


class Outlet(Protocol):
    """Takes records out of the process. One thread delivers; any may call the rest."""

    where: str
    """Where to, for people."""

    def deliver(self, executions: Sequence[GraphExecution], goes_on: GoesOn) -> Counter[LossReason]:
        """Deliver a batch, however long that takes; gives what was lost of it. Raises nothing."""

    def hurry(self) -> None:
        """Let a delivery that waits for its next attempt make it now."""

    def close(self) -> None:
        """End it, and a delivery under way with it."""


def give_way() -> None:
    """Lets another thread that waits for the interpreter have it now.

    Encoding is pure Python. Without this a thread that comes back from the device waits for the
    interpreter until its switch interval (5 ms) is over: the recorder would make the very stumbles it records.
    """
    time.sleep(0)


# ---- our own


class OtlpOutlet:
    """Encodes records straight to OTLP's bytes and sees to every answer."""

    def __init__(self, encoder: RequestEncoder, client: OtlpClient) -> None:
        self._encoder = encoder
        self._client = client
        self.where = client.connection.endpoint
        self._reasons_logged: set[str] = set()

    def deliver(self, executions: Sequence[GraphExecution], goes_on: GoesOn) -> Counter[LossReason]:
        losses: Counter[LossReason] = Counter()
        for request in self._encoder.requests(self._spans(executions, losses)):
            losses += self._sent(request, goes_on)
        return losses

    def hurry(self) -> None:
        self._client.hurry()

    def close(self) -> None:
        self._client.close()

    def _spans(self, executions: Sequence[GraphExecution], losses: Counter[LossReason]) -> Iterator[bytes]:
        encode = self._encoder.span
        for number, execution in enumerate(executions):
            if number % SPANS_BETWEEN_WAYS == 0:
                give_way()
            try:
                span = encode(execution)
            except ContractError:
                losses[LossReason.NOT_ENCODABLE] += 1
            else:
                yield span

    def _sent(self, request: Request, goes_on: GoesOn) -> Counter[LossReason]:
        try:
            answer = self._client.send(request.body, goes_on)
        except NotTakenError as error:
            return Counter({self._loss_reason(error, goes_on): request.spans})
        self._look_at(answer.reason)
        return Counter({LossReason.REFUSED: min(answer.refused, request.spans)})

    def _loss_reason(self, error: NotTakenError, goes_on: GoesOn) -> LossReason:
        """Of a request that was given up: refused for good, or it could have waited longer."""
        if not error.retryable:
            goes_on(error)
            return LossReason.EXPORT_FAILED
        return LossReason.STOPPED if self._client.is_closed else LossReason.BUFFER_FULL

    def _look_at(self, reason: str) -> None:
        if reason and reason not in self._reasons_logged and len(self._reasons_logged) < _REASONS_LOGGED_MAX:
            self._reasons_logged.add(reason)
            logger.warning("the collector at %s refuses: %s", self.where, reason)


# ---- the SDK's


class CourteousBatch(list[ReadableSpan]):
    """A batch that lets the engine's thread run between any two spans while an exporter encodes it."""

    def __iter__(self) -> Iterator[ReadableSpan]:
        for span in super().__iter__():
            give_way()
            yield span


class ExporterOutlet:
    """Builds spans for an exporter that the user handed in."""

    def __init__(self, builder: SpanBuilder, exporter: SpanExporter) -> None:
        self._builder = builder
        self._exporter = exporter
        self.where = type(exporter).__name__

    def deliver(self, executions: Sequence[GraphExecution], goes_on: GoesOn) -> Counter[LossReason]:  # noqa: ARG002
        """An exporter tries again by itself and does not say what is worth it: what it gives up is lost."""
        losses: Counter[LossReason] = Counter()
        spans = self._spans(executions, losses)
        if spans and not self._succeeds(spans):
            losses[LossReason.EXPORT_FAILED] = len(spans)
        return losses

    def hurry(self) -> None:
        """An exporter's waits are its own."""

    def close(self) -> None:
        self._exporter.shutdown()

    def _spans(self, executions: Sequence[GraphExecution], losses: Counter[LossReason]) -> CourteousBatch:
        spans = CourteousBatch()
        for execution in executions:
            give_way()
            try:
                spans.append(self._builder.build(execution))
            except ContractError:
                losses[LossReason.NOT_ENCODABLE] += 1
        return spans

    def _succeeds(self, spans: list[ReadableSpan]) -> bool:
        try:
            return self._exporter.export(spans) is SpanExportResult.SUCCESS
        except Exception:
            logger.exception("the exporter failed on %d graph executions", len(spans))
            return False
