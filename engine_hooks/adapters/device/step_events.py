"""Pairs of events around an engine's steps, one open at a time, and which step each pair belongs to."""

import time
from collections.abc import Callable, Iterator
from typing import Any, Final, Generic, TypeVar, cast

from engine_hooks.adapters.device.event_source import EventSource
from engine_hooks.adapters.device.pairs import EventPair
from engine_hooks.adapters.device.tracker import ExecutionTracker, Times
from engine_hooks.contract.names import GraphKind

StepT = TypeVar("StepT")
_STEP: Final = "step"


class StepEvents(Generic[StepT]):
    """Puts a pair of events around the device work of each step. One thread calls it, and nothing here waits."""

    def __init__(self, source: EventSource[Any], clock_ns: Callable[[], int] = time.monotonic_ns) -> None:
        """Makes all events there will ever be. Raises what the source raises where its device is not there."""
        self._tracker: ExecutionTracker[Any] = ExecutionTracker(source, clock_ns=clock_ns)
        self._pair: EventPair[Any] | None = None

    def begin(self, step: StepT, name: str, kind: GraphKind, *, after_idle: bool = False) -> bool:
        """Right before the step's first work on the device; false where it is not measured."""
        if after_idle:
            self._tracker.idle()
        pair = self._tracker.begin(name, kind, {_STEP: step})
        self._pair = pair if pair.measured else None
        return pair.measured

    def end(self) -> StepT | None:
        """Right after the last work of the open step was submitted; gives that step."""
        pair, self._pair = self._pair, None
        if pair is None:
            return None
        step = self._step_of(pair)
        self._tracker.end(pair)
        return step

    def abandon(self) -> StepT | None:
        """The open step's submission failed on its way, or was never ended; gives that step."""
        pair, self._pair = self._pair, None
        if pair is None:
            return None
        step = self._step_of(pair)
        self._tracker.abandon(pair)
        return step

    def completed(self) -> Iterator[tuple[StepT, Times]]:
        """Steps that the device has passed, in the order of submission, each once."""
        for pair, times in self._tracker.completed():
            yield self._step_of(pair), times

    def _step_of(self, pair: EventPair[Any]) -> StepT:
        return cast("StepT", (pair.fields or {})[_STEP])
