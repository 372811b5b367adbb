"""When the host is systematically slower than the device, and with which graphs.

Host times of one slow host follow one another and scatter little. A run of late rounds that soon gives way to rounds
on time was a burst of stumbles. Graphs of a kind share what is known: a scheduler that leaves a slow graph after
three rounds, and the next after three more, has met one slow host. Once late, a kind stays late until its rounds are
on time again, however long it is not run.
"""

from typing import Final, NamedTuple

import numpy as np

from queries.findings.timeline import Bools, Floats, Ints, Timeline

LATE_ABOVE: Final = 1.02
"""Host time over GPU time from which a round is late."""
RUN_MIN: Final = 5
"""Late rounds in a row that make a slow host, if nothing is known of what follows, ..."""
RUN_MIN_ENDED: Final = 12
"""... and if rounds on time follow."""
ON_TIME_ROUNDS: Final = 3
"""Rounds on time in a row after which the host is no longer slow."""
SCATTER_MAX: Final = 0.11
"""Standard deviation of the logarithm of one slow host's times; stumbles scatter more."""
IDLED_MIN: Final = 0.1
"""Share of the late rounds of a slow host before which the device idled: else it kept up, however long it took."""
LOOK_AHEAD: Final = 6


class Slow(NamedTuple):
    """The host is slow with a graph or kind."""

    from_ns: int
    until_ns: int | None
    """`None`: no round on time has been seen since."""
    ratio: float
    """Host time over GPU time."""


class _Rounds(NamedTuple):
    """Decoding rounds with a known host time that waited for no results."""

    started: Ints
    graph: Ints
    speculative: Bools
    ratio: Floats
    idled: Bools
    """The device idled before it."""
    place: Ints
    """Position among all of them."""

    def among(self, which: Bools) -> "_Rounds":
        """Some of them."""
        return _Rounds(
            self.started[which],
            self.graph[which],
            self.speculative[which],
            self.ratio[which],
            self.idled[which],
            self.place[which],
        )


def late_ratios(timeline: Timeline, gpu: Floats) -> Floats:
    """Host time over GPU time where the host is systematically late, by bin and graph; else 0."""
    rounds = _rounds_of(timeline, gpu)
    result = np.zeros_like(gpu)
    if not (rounds.ratio > LATE_ABOVE).any():
        return result
    starts = timeline.since_ns + np.arange(len(gpu)) * timeline.bin_ns
    kinds = _kinds(timeline)
    of_kind = {}
    for kind in (False, True):
        of_it = rounds.among(rounds.speculative == kind)
        of_kind[kind] = _slow(of_it, rounds) or _hardly_run(of_it, rounds)
    for graph in range(gpu.shape[1]):
        own = rounds.among(rounds.graph == graph)
        for slow in of_kind[kinds[graph]] if graph in kinds else ():
            _mark(result[:, graph], starts, _as_of_its_own(_unless_on_time(slow, own), own), timeline.bin_ns)
        for slow in _slow(own, rounds, one_graph=True):
            _mark(result[:, graph], starts, slow, timeline.bin_ns)
    return result


def _rounds_of(timeline: Timeline, gpu: Floats) -> _Rounds:
    known = (timeline.host >= 0) & timeline.decoding & ~timeline.idle
    known &= ~timeline.feedback[timeline.first - 1] | (timeline.first == 0)
    bins, graphs = np.clip(timeline.bins[known], 0, len(gpu) - 1), timeline.graph[known]
    ratio = timeline.host[known] / gpu[bins, graphs]
    idled = timeline.gap[known] > 0
    return _Rounds(timeline.started[known], graphs, timeline.speculative[known], ratio, idled, np.arange(len(ratio)))


def _kinds(timeline: Timeline) -> dict[int, bool]:
    """Whether each graph to decode with is speculative. One never executed is taken to be."""
    never = set(range(len(timeline.names))) - set(timeline.graph.tolist())
    rows = np.flatnonzero(timeline.decoding)
    executed = dict(zip(timeline.graph[rows].tolist(), timeline.speculative[rows].tolist(), strict=True))
    return executed | dict.fromkeys(never, True)


def _slow(rounds: _Rounds, everything: _Rounds, *, one_graph: bool = False) -> list[Slow]:
    """The stretches in which the host is slow with these rounds, in order.

    Of one graph the rounds must also have followed one another in the engine: a graph that is run only in the wake of
    stumbles is late each time, and not slow.
    """
    late = rounds.ratio > LATE_ABOVE
    found = []
    for first, after in _runs(late):
        ended = after < len(late)
        ratios = rounds.ratio[first:after][late[first:after]]
        if len(ratios) < (RUN_MIN_ENDED if ended else RUN_MIN) or _scatter(ratios) > SCATTER_MAX:
            continue
        if rounds.idled[first:after][late[first:after]].mean() < IDLED_MIN:
            continue
        if one_graph and _longest_block(rounds.place[first:after]) < RUN_MIN:
            continue
        if not ended and _strikes_others(rounds, after - 1, everything):
            continue
        until = int(rounds.started[after]) if ended else None
        # What is late from its first round on was slow before, too.
        found.append(Slow(int(rounds.started[first]) if first else 0, until, float(np.median(ratios))))
    return found


def _hardly_run(rounds: _Rounds, everything: _Rounds) -> list[Slow]:
    """Rounds of a kind hardly ever run, and late every time: such a kind must not look cheap."""
    late = rounds.ratio > LATE_ABOVE
    if (
        not 0 < len(late) < RUN_MIN
        or not late.all()
        or not rounds.idled.any()
        or _strikes_others(rounds, len(late) - 1, everything)
    ):
        return []
    return [Slow(0, None, float(np.median(rounds.ratio)))]


def _runs(late: Bools) -> list[tuple[int, int]]:
    """Runs of late rounds: from the first to the end, or to the first of several on time."""
    runs: list[tuple[int, int]] = []
    rows = np.flatnonzero(late)
    if not len(rows):
        return runs
    breaks = np.flatnonzero(np.diff(rows) > ON_TIME_ROUNDS)
    firsts = [int(rows[0]), *rows[breaks + 1].tolist()]
    lasts = [*rows[breaks].tolist(), int(rows[-1])]
    for first, last in zip(firsts, lasts, strict=True):
        open_end = len(late) - 1 - last < ON_TIME_ROUNDS
        runs.append((first, len(late) if open_end else last + 1))
    return runs


def _longest_block(places: Ints) -> int:
    """The most rounds that follow one another directly."""
    breaks = np.flatnonzero(np.diff(places) > 1)
    return int(np.diff([-1, *breaks.tolist(), len(places) - 1]).max())


def _scatter(ratios: Floats) -> float:
    """Standard deviation of the logarithms; of many, the one farthest off does not count."""
    logs = np.log(ratios)
    if len(logs) > RUN_MIN:
        logs = np.delete(logs, int(np.abs(logs - np.median(logs)).argmax()))
    return float(logs.std(ddof=1)) if len(logs) > 1 else 0.0


def _strikes_others(rounds: _Rounds, last: int, everything: _Rounds) -> bool:
    """Whether the rounds right after a run, of other kinds, were late too and then on time: a burst that met all."""
    after = np.flatnonzero(everything.started > rounds.started[last])[: LOOK_AHEAD + 1]
    late = everything.ratio[after] > LATE_ABOVE
    return bool(len(late) > 1 and late[0] and late[1:].mean() < 0.5)


def _unless_on_time(slow: Slow, own: _Rounds) -> Slow:
    """A kind's slow host does not hold for a graph of it that is on time meanwhile."""
    on_time = own.started[(own.ratio <= LATE_ABOVE) & (own.started >= slow.from_ns)]
    if len(on_time) < ON_TIME_ROUNDS:
        return slow
    until = int(on_time[0])
    return slow._replace(until_ns=until if slow.until_ns is None else min(until, slow.until_ns))


def _as_of_its_own(slow: Slow, own: _Rounds) -> Slow:
    """How late a graph of a slow kind is, by its own rounds where there are some: planning need not go with GPU time."""
    late = own.ratio[(own.ratio > LATE_ABOVE) & (own.started >= slow.from_ns)]
    return slow._replace(ratio=float(np.median(late))) if len(late) >= ON_TIME_ROUNDS else slow


def _mark(column: Floats, starts: Ints, slow: Slow, bin_ns: int) -> None:
    """Enter a slow stretch: the bins that lie in it by at least half."""
    middle = starts + bin_ns // 2
    inside = middle >= slow.from_ns
    if slow.until_ns is not None:
        inside &= middle < slow.until_ns
    column[inside] = slow.ratio
