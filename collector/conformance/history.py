"""Rules that an engine instance's executions break one after another."""

from collections import deque
from collections.abc import Iterator
from typing import Final

from collector.conformance import rules
from collector.conformance.findings import Breach
from engine_hooks.contract.execution import GraphExecution

_SLACK_NS: Final = 1_000_000
"""How far observed completions and submissions may lie apart from what the engine counted."""
_IDLE_NS: Final = 1_000_000_000
_DEPTHS_MIN: Final = 1_000
"""Executions after which a depth that was never 0 is told."""
_APART_MIN: Final = 8
"""Executions of which none overlaps another, after which a depth that was never 0 is wrong."""
_STRETCH: Final = 16
"""Executions whose wall times are judged together."""
_STRETCH_MIN: Final = 4
_MISSED_SHARE: Final = 0.1
"""Share of wall times that late observers may spoil."""


class History:
    """What was before, as far as the next execution is held against it."""

    OPEN_MAX: Final = 256

    def __init__(self) -> None:
        self._before: GraphExecution | None = None
        self._ends: deque[int] = deque(maxlen=self.OPEN_MAX)
        self._wall_times = _WallTimes()
        self._apart = _Apart()
        self._depths = 0
        self._zero_depths = 0

    def forget(self) -> None:
        """Executions are missing here: what comes next is held against nothing before them."""
        self._before = None
        self._ends.clear()
        self._wall_times.end_stretch()

    def take(self, execution: GraphExecution, span: str) -> Iterator[Breach]:
        """What the next execution breaks."""
        depth = execution.graph_queue_depth
        if depth is not None:
            self._depths += 1
            self._zero_depths += depth == 0
        if self._before is not None:
            yield from self._order(execution, self._before)
            yield from self._depth(execution, span)
            self._wall_times.take(execution, self._before, span)
        self._before = execution
        self._ends.append(execution.started_at + execution.duration_ns)

    def at_the_end(self) -> Iterator[tuple[Breach, str, int]]:
        """What all of them break together: the breach, an example's span, and how often."""
        if self._depths >= _DEPTHS_MIN and not self._zero_depths:
            yield Breach(rules.DEPTH_NEVER_ZERO, "", f"never 0 in {self._depths} executions"), "", 1
        yield from self._apart.at_the_end()
        yield from self._wall_times.at_the_end()

    def _order(self, execution: GraphExecution, before: GraphExecution) -> Iterator[Breach]:
        back_ns = before.started_at - execution.started_at
        if back_ns > _SLACK_NS:
            yield Breach(rules.CLOCK_BACKWARDS, "", f"starts {back_ns / 1e6:.1f} ms before the one before it")
        free_ns = execution.started_at - max(self._ends)
        if free_ns > _IDLE_NS and not execution.graph_after_idle:
            yield Breach(rules.IDLE_UNMARKED, "", f"submitted {free_ns / 1e9:.1f} s after all before it had completed")

    def _depth(self, execution: GraphExecution, span: str) -> Iterator[Breach]:
        depth = execution.graph_queue_depth
        if depth is None:
            return
        ahead_ns = max(self._ends) - execution.started_at
        self._apart.take(depth, ahead_ns, span)
        if depth and ahead_ns < -_SLACK_NS:
            yield Breach(rules.DEPTH_NOT_RETURNING, "", f"depth {depth}, all completed {-ahead_ns / 1e6:.1f} ms before")
        elif not depth and ahead_ns > _SLACK_NS:
            yield Breach(rules.DEPTH_TOO_LOW, "", f"depth 0, one before completes {ahead_ns / 1e6:.1f} ms later")


class _Apart:
    """Depths of executions that were submitted soon after all before them had completed.

    A completion may be counted a little later than it is observed: one alone tells nothing. A depth that is never 0
    while no two spans overlap is wrong.
    """

    def __init__(self) -> None:
        self._apart = self._others = 0
        self._example: tuple[Breach, str] | None = None

    def take(self, depth: int, ahead_ns: int, span: str) -> None:
        if not depth or ahead_ns > 0:
            self._others += 1
        elif ahead_ns >= -_SLACK_NS:
            self._apart += 1
            value = f"depth {depth}, all completed {-ahead_ns / 1e6:.3f} ms before"
            self._example = self._example or (Breach(rules.DEPTH_NOT_RETURNING, "", value), span)

    def at_the_end(self) -> Iterator[tuple[Breach, str, int]]:
        if self._example is not None and self._apart >= _APART_MIN and not self._others:
            yield *self._example, self._apart


class _WallTimes:
    """Wall times beside what consecutive executions say of the idle gaps between them.

    Judged by stretches, whose sums do not care where in an execution its device stood still.
    """

    def __init__(self) -> None:
        self._judged = self._missed = 0
        self._stretch: list[tuple[int, int, bool]] = []
        """Wall time, expected wall time, and whether these two are too far apart."""
        self._first_off: tuple[Breach, str] | None = None
        self._example: tuple[Breach, str] | None = None

    def take(self, execution: GraphExecution, before: GraphExecution, span: str) -> None:
        expected_ns, slack_ns = _expected_wall_time(execution, before)
        wall_ns = execution.graph_wall_time_ns
        is_off = abs(wall_ns - expected_ns) > slack_ns
        if is_off and self._first_off is None:
            value = f"{wall_ns} ns, and from the end before it {expected_ns} ns passed"
            self._first_off = Breach(rules.WALL_TIME, "", value), span
        self._stretch.append((wall_ns, expected_ns, is_off))
        if len(self._stretch) == _STRETCH:
            self.end_stretch()

    def end_stretch(self) -> None:
        """Judge what there is of a stretch, unless it is too short to tell."""
        stretch, first_off = self._stretch, self._first_off
        self._stretch, self._first_off = [], None
        if len(stretch) < _STRETCH_MIN:
            return
        self._judged += len(stretch)
        differences = [wall - expected for wall, expected, _ in stretch]
        mostly_off = sum(is_off for _, _, is_off in stretch) * 2 > len(stretch)
        # What moves from one execution into the next shows at the two ends of the sum only; a wrong sum grows.
        if mostly_off and abs(sum(differences)) > 2 * max(map(abs, differences)):
            self._missed += len(stretch)
            self._example = self._example or first_off

    def at_the_end(self) -> Iterator[tuple[Breach, str, int]]:
        self.end_stretch()
        if self._example is not None and self._missed > self._judged * _MISSED_SHARE:
            yield *self._example, self._missed


def _expected_wall_time(execution: GraphExecution, before: GraphExecution) -> tuple[int, int]:
    """From the instant the device was free to the end there, and by how much that may be off, in ns."""
    ended, free = _device_end(execution), _device_end(before)
    if ended is None or free is None:
        ended, free = _observed_end(execution), _observed_end(before)
        share, slack_ns = 0.1, 2 * _SLACK_NS
    else:
        share, slack_ns = 0.05, _SLACK_NS
    since = max(execution.started_at, free) if execution.graph_after_idle else free
    expected_ns = max(ended - since, execution.graph_gpu_time_ns)
    return expected_ns, max(slack_ns, int(expected_ns * share))


def _observed_end(execution: GraphExecution) -> int:
    return execution.started_at + execution.duration_ns


def _device_end(execution: GraphExecution) -> int | None:
    offset = execution.graph_gpu_start_offset_ns
    return None if offset is None else execution.started_at + offset + execution.graph_gpu_time_ns
