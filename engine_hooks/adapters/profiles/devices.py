"""One device's operations, ordered and grouped so that each question is a binary search. Times in ns."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine_hooks.adapters.profiles.busy import BusyTime, Times
from engine_hooks.adapters.profiles.columns import Profile


class Run(NamedTuple):
    """A graph launch's operations on one device. Times in ns."""

    started_at: int
    ended_at: int
    stream: int
    """The stream of its first operation."""
    shapes: tuple[int, ...]
    """Of each operation, sorted."""


class Device:
    """The operations of one place of a profile."""

    def __init__(self, profile: Profile, place: int, graphs: Iterable[int]) -> None:
        """`graphs`: correlation ids of graph launches, of any place."""
        columns = profile.operations
        mask = np.frombuffer(columns.place, dtype=np.int64) == place
        started_at, ended_at, correlation, stream, shape = (
            np.frombuffer(column, dtype=np.int64)[mask]
            for column in (columns.started_at, columns.ended_at, columns.correlation, columns.stream, columns.shape)
        )
        order = np.lexsort((ended_at, started_at, correlation))
        self.started_at, self.ended_at = started_at[order], ended_at[order]
        self.stream, self.shape = stream[order], shape[order]
        self.busy = BusyTime(self.started_at, self.ended_at)
        self.correlations, self.first = np.unique(correlation[order], return_index=True)
        self.group_start = self.started_at[self.first]
        self.group_end = np.maximum.reduceat(self.ended_at, self.first)
        self.group_stream = self.stream[self.first]
        self.submitted_at, self.recorded = _submission_times(profile, self.correlations)
        self._streams = {int(number): _Stream(self, int(number)) for number in np.unique(self.stream)}
        is_graph = np.isin(self.correlations, np.fromiter(graphs, np.int64))
        self._graphs = _Ends(self.group_start[is_graph], self.group_end[is_graph])
        known = self.recorded
        self._submitted = np.sort(self.submitted_at[known])
        # An end before its own submission is clock trouble; the pair must still cancel out.
        self._finished = np.sort(np.maximum(self.group_end[known], self.submitted_at[known] + 1))

    @property
    def operations_without_launch(self) -> int:
        """Operations whose launch call the profile does not hold."""
        sizes = np.diff(np.append(self.first, len(self.started_at)))
        return int(sizes[~self.recorded].sum())

    def run_of(self, correlation: int) -> Run | None:
        """What a launch did on this device; None where it did nothing."""
        group = int(np.searchsorted(self.correlations, correlation))
        if group == len(self.correlations) or self.correlations[group] != correlation:
            return None
        first = int(self.first[group])
        last = int(self.first[group + 1]) if group + 1 < len(self.first) else len(self.started_at)
        return Run(
            int(self.group_start[group]),
            int(self.group_end[group]),
            int(self.group_stream[group]),
            tuple(np.sort(self.shape[first:last]).tolist()),
        )

    def queue_depth(self, launched_at: int, run: Run) -> int:
        """Submissions called before this launch and not ended when it was called."""
        recorded = np.searchsorted(self._submitted, launched_at, "left") - np.searchsorted(
            self._finished, launched_at, "right"
        )
        return int(recorded) + self._streams[run.stream].pending_unrecorded(launched_at, run.started_at)

    def free_at(self, run: Run) -> int | None:
        """End of what the run had to follow, its stream's previous operation and the device's previous graph.

        At most the run's own start; None where the profile holds neither.
        """
        ends = (self._streams[run.stream].ends.before(run.started_at), self._graphs.before(run.started_at))
        return max((end for end in ends if end is not None), default=None)


class _Ends:
    """The latest end among what started before a moment."""

    def __init__(self, started_at: Times, ended_at: Times) -> None:
        order = np.argsort(started_at, kind="stable")
        self._started = started_at[order]
        self._latest = np.maximum.accumulate(ended_at[order]) if len(order) else ended_at

    def before(self, moment: int) -> int | None:
        """At most `moment`; None where nothing started before it."""
        earlier = int(np.searchsorted(self._started, moment, "left"))
        return min(int(self._latest[earlier - 1]), moment) if earlier else None


class _Stream:
    """One stream: its operations run in the order of their submission."""

    def __init__(self, device: Device, number: int) -> None:
        own = device.stream == number
        self.ends = _Ends(device.started_at[own], device.ended_at[own])
        unrecorded = ~device.recorded & (device.group_stream == number)
        start = device.group_start[unrecorded]
        self._unrecorded_start = np.sort(start)
        self._unrecorded_end = np.sort(np.maximum(device.group_end[unrecorded], start + 1))

    def pending_unrecorded(self, launched_at: int, started_at: int) -> int:
        """Submissions whose call the profile lacks, but which ran before `started_at` and ended after the launch.

        The stream's order proves that they were submitted earlier: most were, before the profiler started.
        """
        before = np.searchsorted(self._unrecorded_start, max(launched_at, started_at), "left")
        return int(before - np.searchsorted(self._unrecorded_end, launched_at, "right")) if before else 0


def _submission_times(profile: Profile, correlations: Times) -> tuple[Times, NDArray[np.bool_]]:
    """When each correlation id's call started, and whether the profile holds that call."""
    ids = np.frombuffer(profile.host_calls.correlation, dtype=np.int64)
    started_at = np.frombuffer(profile.host_calls.started_at, dtype=np.int64)
    if not len(ids):
        return np.zeros(len(correlations), np.int64), np.zeros(len(correlations), np.bool_)
    order = np.lexsort((started_at, ids))
    ids, first = np.unique(ids[order], return_index=True)
    place = np.minimum(np.searchsorted(ids, correlations), len(ids) - 1)
    return started_at[order][first][place], ids[place] == correlations
