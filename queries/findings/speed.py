"""GPU times that changed: of one graph, or of all together."""

from typing import Final, NamedTuple

import numpy as np

from queries.findings.evidence import Witness
from queries.findings.findings import Kind, SpeedChange
from queries.findings.steps import steps_of
from queries.findings.timeline import Bools, Ints, Timeline

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
    at_ns: int
    log_ratio: float
    others: float | None
    """Median of the other graphs' steps at that instant, as logarithm; `None`: none was seen on both sides."""


def speed_changes_of(timeline: Timeline, witness: Witness) -> list[SpeedChange]:
    """Drift of the clock, and regressions of single graphs, in or into this cell."""
    changes = [change for graph in range(len(timeline.names)) for change in _changes_of(timeline, graph)]
    drifting = [change for change in changes if change.others is None or _together(change)]
    alone = [change for change in changes if change.others is not None and not _together(change)]
    found = []
    if drifting and (drift := _drift(timeline, drifting, witness)) is not None:
        found.append(drift)
    for graph in sorted({change.graph for change in alone}):
        of_graph = [change for change in alone if change.graph == graph]
        if (regression := _regression(timeline, of_graph, witness)) is not None:
            found.append(regression)
    return found


def _together(change: Change) -> bool:
    return change.others is not None and change.others / change.log_ratio >= FOLLOWS


def _changes_of(timeline: Timeline, graph: int) -> list[Change]:
    rows = np.flatnonzero(timeline.graph == graph)
    found = []
    for place, step in steps_of(timeline.gpu[rows].astype(np.float64)):
        # It changed between two executions, which may lie far apart.
        last_before, at = int(timeline.started[rows[place - 1]]), int(timeline.started[rows[place]])
        others = [
            moved
            for other in range(len(timeline.names))
            if other != graph and (moved := _moved(timeline, other, last_before, at, along=step)) is not None
        ]
        found.append(Change(graph, at, step, float(np.median(others)) if others else None))
    return found


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


def _drift(timeline: Timeline, changes: list[Change], witness: Witness) -> SpeedChange | None:
    """Of the graph that shows it best: its steps, one after the other, so that a slow drift counts as a whole."""
    busiest = max({change.graph for change in changes}, key=lambda g: int((timeline.graph == g).sum()))
    steps = [change for change in changes if change.graph == busiest]
    path = np.cumsum([step.log_ratio for step in steps])
    farthest = float(path[np.abs(path).argmax()])
    if abs(farthest) < np.log1p(DRIFT_MIN):
        return None
    ratio = float(np.exp(farthest))
    seen = any(step.others is not None for step in steps)
    graphs = tuple(timeline.names[g] for g in sorted({change.graph for change in changes}))
    says = f"GPU times of all graphs moved together by a factor of {ratio:.3f}."
    confidence = 0.98 if seen else 0.6
    return _finding(
        Kind.CLOCK_DRIFT,
        timeline,
        steps,
        graphs=graphs,
        ratio=ratio,
        says=says,
        confidence=confidence,
        witness=witness,
    )


def _regression(timeline: Timeline, steps: list[Change], witness: Witness) -> SpeedChange | None:
    path = np.cumsum([step.log_ratio for step in steps])
    highest = float(path.max())
    if highest < np.log1p(REGRESSION_MIN):
        return None
    ratio = float(np.exp(highest))
    name = timeline.names[steps[0].graph]
    says = f"The GPU time of {name} rose by a factor of {ratio:.3f} while other graphs' did not."
    return _finding(
        Kind.GRAPH_REGRESSION,
        timeline,
        steps,
        graphs=(name,),
        ratio=ratio,
        says=says,
        confidence=0.97,
        witness=witness,
    )


def _finding(
    kind: Kind,
    timeline: Timeline,
    steps: list[Change],
    *,
    graphs: tuple[str, ...],
    ratio: float,
    says: str,
    confidence: float,
    witness: Witness,
) -> SpeedChange:
    since = max(min(step.at_ns for step in steps), timeline.since_ns)
    rows = [int(np.flatnonzero(timeline.started >= step.at_ns)[0]) for step in steps]
    fraction = (timeline.until_ns - since) / max(timeline.until_ns - timeline.since_ns, 1)
    return SpeedChange(
        kind=kind,
        since_ns=since,
        until_ns=timeline.until_ns,
        fraction=fraction,
        loss_percent=max(0.0, 100 * (1 - 1 / ratio) * fraction) if kind == Kind.CLOCK_DRIFT else 0.0,
        tokens_lost=0.0,
        confidence=confidence,
        evidence=(
            witness.that(
                says,
                "gpu_time_drift",
                "graph_costs",
                sequences=timeline.sequence[rows].tolist(),
                gpu_time_ratio=(ratio, "ratio"),
            ),
        ),
        graphs=graphs,
        ratio=ratio,
    )
