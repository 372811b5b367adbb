"""GPU times that changed: of one graph, or of all together.

In one stretch of time it is the one or the other: of a drift and a graph's own rise that overlap, the larger is told.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

import numpy as np

from engine_hooks.contract.names import GpuTimeSource
from queries.findings.evidence import Witness
from queries.findings.findings import Kind, SpeedChange, tokens_short
from queries.findings.steps import steps_of
from queries.findings.timeline import Bools, Floats, Ints, Timeline

REFERENCE_MIN: Final = 2
"""Executions on either side by which another graph bears witness, ..."""
REFERENCE_NS: Final = 12_000_000_000
"""... so far from the change at most."""
DRIFT_MIN: Final = 0.03
"""All graphs' GPU times moved by at least this much: a drift of the clock."""
REGRESSION_MIN: Final = 0.04
"""One graph's GPU time rose by at least this much and the others' did not."""
FOLLOWS: Final = 0.5
"""A graph moves with another if it moves at least this share of the way."""
APART_NS: Final = 4_000_000_000
"""From so far before to so far after: to see a slow drift of the others."""


class Change(NamedTuple):
    """A step of one graph's GPU time."""

    graph: int
    last_before_ns: int
    """The last execution before it began then, ..."""
    at_ns: int
    """... and the first after it then."""
    log_ratio: float
    others: float | None
    """Median of the other graphs' steps at that instant, as logarithm; `None`: none was seen on both sides."""


class Course(NamedTuple):
    """Several steps of one graph, as one course."""

    kind: Kind
    steps: list[Change]
    path: Floats
    """Level after each step against that before the first, as logarithm."""
    extreme: int
    """The step after which it was farthest."""
    others: dict[int, float]
    """How each other graph's level had moved by then, as logarithm; without those not executed on both sides."""

    @property
    def log_ratio(self) -> float:
        """How far it went."""
        return float(self.path[self.extreme])

    @property
    def others_moved(self) -> float | None:
        """Median of the others."""
        return float(np.median(list(self.others.values()))) if self.others else None

    @property
    def seen(self) -> bool:
        """Some other graph bore witness to some step."""
        return any(step.others is not None for step in self.steps)

    def overlaps(self, other: "Course") -> bool:
        """Whether some of the steps of the one lie between those of the other, or so near that nobody could tell."""
        return (
            self.steps[0].last_before_ns - APART_NS <= other.steps[-1].at_ns
            and other.steps[0].last_before_ns - APART_NS <= self.steps[-1].at_ns
        )


def speed_changes_of(timeline: Timeline, witness: Witness) -> list[SpeedChange]:
    """Drift of the clock, and regressions of single graphs, in or into this cell."""
    changes = [change for graph in range(len(timeline.names)) for change in _changes_of(timeline, graph)]
    drifting = [change for change in changes if change.others is None or _together(change)]
    alone = [change for change in changes if change.others is not None and not _together(change)]
    drift = _drift(timeline, drifting)
    regressions = [
        course
        for graph in sorted({change.graph for change in alone})
        if (course := _regression(timeline, [change for change in alone if change.graph == graph])) is not None
    ]
    told = _exclusive(drift, regressions)
    return [_finding(timeline, course, witness) for course in told]


def _exclusive(drift: Course | None, regressions: list[Course]) -> list[Course]:
    """A drift says that all moved, a regression that one did alone: of those that overlap, the larger is left."""
    if drift is None:
        return regressions
    rivals = [course for course in regressions if course.overlaps(drift)]
    if any(course.log_ratio > abs(drift.log_ratio) for course in rivals):
        return regressions
    return [drift, *(course for course in regressions if course not in rivals)]


def _together(change: Change) -> bool:
    return change.others is not None and change.others / change.log_ratio >= FOLLOWS


def _changes_of(timeline: Timeline, graph: int) -> list[Change]:
    rows = np.flatnonzero(timeline.graph == graph)
    found = []
    for place, step in steps_of(timeline.gpu[rows].astype(np.float64)):
        # It changed between two executions, which may lie far apart.
        last_before, at = int(timeline.started[rows[place - 1]]), int(timeline.started[rows[place]])
        others = list(_others_moved(timeline, graph, last_before, at, along=step).values())
        found.append(Change(graph, last_before, at, step, float(np.median(others)) if others else None))
    return found


def _others_moved(timeline: Timeline, graph: int, last_before: int, at: int, *, along: float) -> dict[int, float]:
    """How each other graph moved meanwhile, as far as it was executed on both sides."""
    return {
        other: moved
        for other in range(len(timeline.names))
        if other != graph and (moved := _moved(timeline, other, last_before, at, along=along)) is not None
    }


def _moved(timeline: Timeline, graph: int, last_before_ns: int, at_ns: int, *, along: float) -> float | None:
    """How a graph's GPU time moved meanwhile, as logarithm; `None` if it was not executed on both sides.

    Looked at closely and from farther off, since a slow drift has no single instant; the one that goes along more
    with the step in question counts.
    """
    of_graph = timeline.graph == graph
    moves = []
    for apart in (0, APART_NS):
        until, since = last_before_ns - apart, at_ns + apart
        before = timeline.gpu[of_graph & _within(timeline.started, until - REFERENCE_NS, until + 1)][-16:]
        after = timeline.gpu[of_graph & _within(timeline.started, since, since + REFERENCE_NS)][:16]
        if min(len(before), len(after)) >= REFERENCE_MIN:
            moves.append(float(np.log(np.median(after)) - np.log(np.median(before))))
    return max(moves, key=lambda move: move / along) if moves else None


def _within(started: Ints, low: int, high: int) -> Bools:
    return np.asarray((started >= low) & (started < high))


def _drift(timeline: Timeline, changes: list[Change]) -> Course | None:
    """Of the graph that shows it best: its steps, one after the other, so that a slow drift counts as a whole."""
    if not changes:
        return None
    busiest = max({change.graph for change in changes}, key=lambda g: int((timeline.graph == g).sum()))
    steps = [change for change in changes if change.graph == busiest]
    path = np.cumsum([step.log_ratio for step in steps])
    course = _course(timeline, Kind.CLOCK_DRIFT, steps, path, int(np.abs(path).argmax()))
    moved = course.others_moved
    # Steps left out of the path, as the graph's own, must not have added up to a drift that the others do not show.
    if abs(course.log_ratio) < np.log1p(DRIFT_MIN) or (moved is not None and moved / course.log_ratio < FOLLOWS):
        return None
    return course


def _regression(timeline: Timeline, steps: list[Change]) -> Course | None:
    path = np.cumsum([step.log_ratio for step in steps])
    course = _course(timeline, Kind.GRAPH_REGRESSION, steps, path, int(path.argmax()))
    moved = course.others_moved
    if course.log_ratio < np.log1p(REGRESSION_MIN) or (moved is not None and moved / course.log_ratio >= FOLLOWS):
        return None
    return course


def _course(timeline: Timeline, kind: Kind, steps: list[Change], path: Floats, extreme: int) -> Course:
    first, last, along = steps[0], steps[extreme], float(path[extreme]) or 1.0
    others = _others_moved(timeline, first.graph, first.last_before_ns, last.at_ns, along=along)
    return Course(kind, steps, path, extreme, others)


def _says(timeline: Timeline, course: Course, *, by_host: bool) -> str:
    """What moved, and by how much the others did."""
    name, factor = timeline.names[course.steps[0].graph], _factor(course.log_ratio)
    times = "time by the host's clock" if by_host else "GPU time"
    others = ", ".join(f"{timeline.names[other]} {_factor(moved)}" for other, moved in course.others.items())
    if course.kind == Kind.GRAPH_REGRESSION:
        less = (course.others_moved or 0.0) >= np.log1p(DRIFT_MIN)
        how = ", more than others'" if less else " by itself"
        return f"The {times} of {name} rose by a factor of {factor}{how}" + (
            f"; meanwhile: {others}." if others else "."
        )
    at_farthest = " at its farthest" if course.extreme < len(course.steps) - 1 else ""
    if others:
        return f"The {times} of graphs moved together, by these factors{at_farthest}: {name} {factor}, {others}."
    seen = "others' went along step by step" if course.seen else "whether others' moved too was not seen"
    return f"The {times} of {name} moved by a factor of {factor}{at_farthest}; {seen}."


def _factor(log_ratio: float) -> str:
    return f"{np.exp(log_ratio):.3f}"


def _finding(timeline: Timeline, course: Course, witness: Witness) -> SpeedChange:
    steps, ratio = course.steps, float(np.exp(course.log_ratio))
    by_host = _timed_by_host(timeline, [steps[0].graph, *course.others])
    since = max(min(step.at_ns for step in steps), timeline.since_ns)
    rows = [int(np.flatnonzero(timeline.started >= step.at_ns)[0]) for step in steps]
    drift = course.kind == Kind.CLOCK_DRIFT
    share = _lost_share(timeline, course) if drift else 0.0
    emitted = sum(e.batch_tokens_emitted or 0 for e in timeline.executions[int(timeline.in_cell.argmax()) :])
    graphs = sorted({steps[0].graph, *(course.others if drift else ())})
    return SpeedChange(
        kind=course.kind,
        since_ns=since,
        until_ns=timeline.until_ns,
        fraction=(timeline.until_ns - since) / max(timeline.until_ns - timeline.since_ns, 1),
        loss_percent=100 * share,
        tokens_lost=tokens_short(emitted, share),
        confidence=_confidence(course),
        evidence=(
            witness.that(
                _says(timeline, course, by_host=by_host),
                "gpu_time_drift",
                "graph_costs",
                sequences=timeline.sequence[rows].tolist(),
                gpu_time_ratio=(ratio, "ratio"),
            ),
        ),
        graphs=tuple(timeline.names[graph] for graph in graphs),
        ratio=ratio,
        timed_by_host=by_host,
        others_seen=bool(course.others) or course.seen,
    )


def _confidence(course: Course) -> float:
    if course.kind == Kind.GRAPH_REGRESSION:
        return 0.97
    return 0.98 if course.others else 0.85 if course.seen else 0.6


def _lost_share(timeline: Timeline, course: Course) -> float:
    """Share of the cell's throughput lost while the graphs ran slower than before the first step."""
    edges = np.clip([*(step.at_ns for step in course.steps), timeline.until_ns], timeline.since_ns, timeline.until_ns)
    slowed = 1 - np.exp(-np.maximum(course.path, 0))
    return float(slowed @ np.diff(edges)) / max(timeline.until_ns - timeline.since_ns, 1)


def _timed_by_host(timeline: Timeline, graphs: Iterable[int]) -> bool:
    """Whether the times of these graphs were taken by the host's clock, wherever the sender says."""
    rows = np.flatnonzero(np.isin(timeline.graph, list(graphs))).tolist()
    sources = {timeline.executions[row].graph_gpu_time_source for row in rows} - {None}
    return GpuTimeSource.HOST in sources
