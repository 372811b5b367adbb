"""What the engine called the work around a launch: its annotation ranges (`record_function`, NVTX)."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from engine_hooks.adapters.profiles.columns import Annotation, LaunchCall

STEP_COUNTER: Final = re.compile(r"\s*#\s*\d+$")
"""A trailing number counts the steps of one run; with it every execution would be a graph of its own."""
PROFILER_STEP: Final = "ProfilerStep"
"""The profiler's own range around each step; says nothing about the graph."""
NAME_LENGTH_MAX: Final = 100


def enclosing_names(
    annotations: Mapping[tuple[str, str], Sequence[Annotation]], calls: Sequence[LaunchCall]
) -> list[str]:
    """For each call, in order of time, the innermost range around it on its own thread; empty where there is none."""
    sweeps = {thread: _Sweep(ranges) for thread, ranges in annotations.items()}
    return [sweeps[call.thread].name_at(call) if call.thread in sweeps else "" for call in calls]


class _Sweep:
    """Walks one thread's ranges forward in time."""

    def __init__(self, ranges: Sequence[Annotation]) -> None:
        named = (Annotation(start, end, _plain(name)) for start, end, name in ranges)
        # Latest first, so that the next one is at the end; of two that start together the longer is outside.
        self._ahead = sorted((r for r in named if r.name), key=lambda r: (-r.started_at, r.ended_at, r.name))
        self._open: list[Annotation] = []

    def name_at(self, call: LaunchCall) -> str:
        while self._ahead and self._ahead[-1].started_at <= call.started_at:
            self._open.append(self._ahead.pop())
        while self._open and self._open[-1].ended_at < call.started_at:
            self._open.pop()
        return self._open[-1].name if self._open else ""


def _plain(name: str) -> str:
    name = STEP_COUNTER.sub("", name).strip()
    return "" if name == PROFILER_STEP else name[:NAME_LENGTH_MAX]
