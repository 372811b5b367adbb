"""One execution on its way: a pair of events and what is known of it."""

from collections.abc import Mapping
from types import TracebackType
from typing import Any, Generic, Protocol

from engine_hooks.adapters.device.event_source import EventT
from engine_hooks.contract.names import GraphKind


class Tracker(Protocol[EventT]):
    """Whoever gives pairs out: how an execution ended is told to it."""

    def end(self, pair: "EventPair[EventT]") -> None: ...
    def abandon(self, pair: "EventPair[EventT]") -> None: ...


class EventPair(Generic[EventT]):
    """One execution from its submission until it was polled; afterwards the same object serves another one.

    As a context manager it ends the execution that `begin` began.
    """

    __slots__ = (
        "_tracker",
        "after_idle",
        "end",
        "fields",
        "graph_kind",
        "graph_name",
        "observed_ns",
        "queue_depth",
        "sequence",
        "start",
        "stream",
        "submitted_ns",
    )

    def __init__(self, tracker: Tracker[EventT], start: EventT, end: EventT) -> None:
        self._tracker = tracker
        self.start = start
        self.end = end
        self.stream: object = None
        self.graph_name = ""
        self.graph_kind = GraphKind.PLAIN_DECODE
        self.fields: Mapping[str, Any] | None = None
        """Further fields of the `GraphExecution`, read when it is polled: an engine adds what it learns late."""
        self.sequence = -1
        self.submitted_ns = 0
        self.observed_ns = 0
        self.queue_depth: int | None = None
        self.after_idle = False

    @property
    def measured(self) -> bool:
        """Whether it is measured: false for what stands in where the pool was exhausted."""
        return True

    def __enter__(self) -> "EventPair[EventT]":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._tracker.end(self)
        else:
            self._tracker.abandon(self)


class Unmeasured(EventPair[Any]):
    """Stands in for an execution that is not measured; takes what an engine does with a pair and keeps nothing."""

    __slots__ = ()

    def __init__(self, tracker: Tracker[Any]) -> None:
        super().__init__(tracker, None, None)

    @property
    def measured(self) -> bool:
        return False

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.fields = None
