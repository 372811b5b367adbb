"""One device's operations, ordered and grouped so that each question is a binary search. Times in ns."""

from array import array
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine_hooks.adapters.profiles.busy import BusyTime, Times
from engine_hooks.adapters.profiles.columns import DeviceOperations, Profile


class Run(NamedTuple):
    """A graph launch's operations on one device. Times in ns."""

    started_at: int
    ended_at: int
    stream: int
    """The stream of its first operation."""
    shapes: tuple[int, ...]
    """Of each operation, sorted."""
    starts_with_another: bool
    """Another graph starts on the device at the same moment, and stands before it."""


class Device:
    """The operations of one place of a profile."""

    def __init__(self, profile: Profile, place: int, graphs: Iterable[int]) -> None:
        """`graphs`: correlation ids of graph launches, of any place."""
        columns = profile.operations
        rows = np.flatnonzero(np.frombuffer(columns.place, dtype=np.int64) == place)
        # By launch, and within one in the order of time: what it started first stands first.
        keys = (columns.ended_at, columns.started_at, columns.correlation)
        rows = rows[np.lexsort(tuple(_at(column, rows) for column in keys))]
        started_at, ended_at = _at(columns.started_at, rows), _at(columns.ended_at, rows)
        self._group(columns, rows, started_at, ended_at)
        self._streams = _streams(started_at, ended_at, _at(columns.stream, rows))
        del rows
        self.busy = BusyTime(started_at, ended_at)
        is_graph = np.isin(self._correlations, np.fromiter(graphs, np.int64))
        self._graphs = Ends(self._start[is_graph], self._end[is_graph])
        self._starts_with_another = _repeated(self._start, np.flatnonzero(is_graph))
        self._take_submissions(profile)

    def _group(self, columns: DeviceOperations, rows: Times, started_at: Times, ended_at: Times) -> None:
        """Makes one group of each launch's operations. `rows` are the operations' places in the columns."""
        correlation = _at(columns.correlation, rows)
        first_of_group = np.ones(len(rows), np.bool_)
        first_of_group[1:] = correlation[1:] != correlation[:-1]
        self._first = np.flatnonzero(first_of_group)
        self._correlations = correlation[self._first]
        self._shapes = _at(columns.shape, rows)
        self._start = started_at[self._first]
        self._end = np.maximum.reduceat(ended_at, self._first)
        self._stream = _at(columns.stream, rows[self._first])

    def _take_submissions(self, profile: Profile) -> None:
        submitted_at, self._recorded = _submission_times(profile, self._correlations)
        for number, stream in self._streams.items():
            unrecorded = ~self._recorded & (self._stream == number)
            stream.take_unrecorded(self._start[unrecorded], self._end[unrecorded])
        known = self._recorded
        self._submitted = np.sort(submitted_at[known])
        # An end before its own submission is clock trouble; the pair must still cancel out.
        self._finished = np.sort(np.maximum(self._end[known], submitted_at[known] + 1))

    @property
    def operations_without_launch(self) -> int:
        """Operations whose launch call the profile does not hold."""
        sizes = np.diff(np.append(self._first, len(self._shapes)))
        return int(sizes[~self._recorded].sum())

    def run_of(self, correlation: int) -> Run | None:
        """What a launch did on this device; None where it did nothing."""
        group = int(np.searchsorted(self._correlations, correlation))
        if group == len(self._correlations) or self._correlations[group] != correlation:
            return None
        first = int(self._first[group])
        last = int(self._first[group + 1]) if group + 1 < len(self._first) else len(self._shapes)
        return Run(
            int(self._start[group]),
            int(self._end[group]),
            int(self._stream[group]),
            tuple(np.sort(self._shapes[first:last]).tolist()),
            bool(self._starts_with_another[group]),
        )

    def queue_depth(self, launched_at: int, run: Run) -> int:
        """Submissions called before this launch and not ended when it was called."""
        recorded = np.searchsorted(self._submitted, launched_at, "left") - np.searchsorted(
            self._finished, launched_at, "right"
        )
        return int(recorded) + self._streams[run.stream].pending_unrecorded(launched_at, run.started_at)

    def free_at(self, run: Run) -> int | None:
        """End of what the run had to follow, its stream's previous operation and the device's previous graph.

        At most the run's own start; None where the profile holds neither. Of graphs that start at the same moment
        only one had to wait: idle time is charged once.
        """
        if run.starts_with_another:
            return run.started_at
        ends = (self._streams[run.stream].ends.before(run.started_at), self._graphs.before(run.started_at))
        return max((end for end in ends if end is not None), default=None)


def _at(column: "array[int]", rows: Times) -> Times:
    return np.frombuffer(column, dtype=np.int64)[rows]


def _repeated(values: Times, places: Times) -> NDArray[np.bool_]:
    """Which of `places` hold a value that an earlier one of them holds."""
    repeated = np.zeros(len(values), np.bool_)
    repeated[places] = True
    repeated[places[np.unique(values[places], return_index=True)[1]]] = False
    return repeated


def _streams(started_at: Times, ended_at: Times, stream: Times) -> "dict[int, _Stream]":
    return {
        int(number): _Stream(started_at[stream == number], ended_at[stream == number]) for number in np.unique(stream)
    }


class Ends:
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

    def __init__(self, started_at: Times, ended_at: Times) -> None:
        self.ends = Ends(started_at, ended_at)

    def take_unrecorded(self, started_at: Times, ended_at: Times) -> None:
        """Submissions whose call the profile lacks: first start and last end of each."""
        self._unrecorded_start = np.sort(started_at)
        self._unrecorded_end = np.sort(np.maximum(ended_at, started_at + 1))

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
