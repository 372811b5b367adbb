"""What the host did to the device: slow in general, stumbling now and then, in bursts, or all the time.

They are told apart so. A slow host (`host_bound`) takes longer than the device for one round after another, by a
steady factor: its host times scatter little, and they belong to some kinds of round. Contention for the CPU strikes
irregularly, rounds of every graph, throughout the cell. A burst strikes a few rounds in a row. What is left are
single stumbles.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from engine_hooks.commands.counting import counted
from queries.findings.costs import Costs
from queries.findings.decisions import Decisions
from queries.findings.evidence import Witness
from queries.findings.findings import HostLate, Kind, tokens_short
from queries.findings.timeline import Bools, Ints, Timeline

STUMBLE_MIN_NS: Final = 5_000_000
"""Idle time before a round from which the host stumbled."""
LATE_HOST_NS: Final = 5_000_000
"""Host time from which a round was held up, whether or not the device noticed ..."""
LATE_HOST_TIMES: Final = 6
"""... if it is also that many times the usual one."""
BURST_ROUNDS: Final = 3
CONTENTION_RATE_HZ: Final = 1.0
"""Rounds held up per second from which the CPU is contended ..."""
CONTENTION_SPREAD: Final = 0.7
"""... in so large a share of the cell's stretches of three seconds."""
CONTENTION_STRETCH_NS: Final = 3_000_000_000
CONTENTION_IDLED: Final = 0.05
"""... and the device idled before so large a share of them: a host in no hurry, with the device busy, is not contended."""
SURE_ROUNDS: Final = 10
"""Rounds that the device idled before, from which a finding is sure."""
HOST_BOUND_ROUNDS: Final = 5
"""Late rounds that have to be seen, in the cell or else before it."""
HOST_BOUND_S: Final = 1.0
"""Time in which the host was systematically late, or kept a graph from use by being so, from which it counts."""
NOT_TOLD_FROM_NO_WORK: Final = (
    " It had let the queue drain before them: whether it had no work then, the record cannot tell."
)


@dataclass(frozen=True)
class Stumbles:
    """The rounds that the host stumbled with, as rows of the timeline."""

    rows: Ints
    """The device idled before them."""
    held_up: Ints
    """The host took unusually long for them; the device may have had work meanwhile."""
    bursts: tuple[Ints, ...]

    @property
    def is_contended(self) -> bool:
        """Enough of the rounds held up left the device idle."""
        return len(self.rows) >= CONTENTION_IDLED * len(self.held_up)


def stumbles_of(timeline: Timeline, costs: Costs) -> Stumbles:
    """The stumbles of a cell: beyond what a slow host and handoffs explain."""
    candidates = timeline.in_cell & ~timeline.idle
    known = timeline.host[candidates & (timeline.host >= 0)]
    usual = float(np.median(known)) if len(known) else 0.0
    slow = costs.slow > 0
    stumbled = candidates & (costs.stumble >= STUMBLE_MIN_NS)
    held_up = candidates & ~slow & (timeline.host >= max(LATE_HOST_NS, LATE_HOST_TIMES * usual))
    rows = np.flatnonzero(stumbled)
    return Stumbles(rows, np.flatnonzero(stumbled | held_up), tuple(_bursts(timeline, stumbled)))


def _bursts(timeline: Timeline, stumbled: Bools) -> list[Ints]:
    """Runs of decoding rounds that all stumbled; prefills between them do not end a run."""
    rounds = np.flatnonzero(timeline.in_cell & timeline.decoding)
    edges = np.flatnonzero(np.diff(np.concatenate(([False], stumbled[rounds], [False])).astype(np.int8)))
    return [rounds[a:b] for a, b in edges.reshape(-1, 2).tolist() if b - a >= BURST_ROUNDS]


def host_bound_of(timeline: Timeline, costs: Costs, decisions: Decisions | None, witness: Witness) -> HostLate | None:
    """The host is systematically slower than the device."""
    late = _late_time(timeline, costs, decisions)
    if late is None or late[1] < HOST_BOUND_S:
        return None
    bins, seconds, graphs = late
    slow = costs.slow > 0
    rows = np.flatnonzero(slow & timeline.in_cell & timeline.decoding & (timeline.host > timeline.round_gpu))
    if len(rows) < HOST_BOUND_ROUNDS:
        rows = np.flatnonzero(slow & timeline.decoding & (timeline.host > timeline.round_gpu))
    if len(rows) < HOST_BOUND_ROUNDS:
        return None
    ratio = float(np.median(timeline.host[rows] / timeline.round_gpu[rows]))
    lost = _lost_to_slow_host(costs, decisions)
    idle_ns = int(timeline.gap[rows].sum())
    since = timeline.since_ns + int(bins[0]) * timeline.bin_ns
    return HostLate(
        kind=Kind.HOST_BOUND,
        since_ns=max(since, timeline.since_ns),
        until_ns=min(timeline.since_ns + int(bins[-1] + 1) * timeline.bin_ns, timeline.until_ns),
        fraction=min(seconds / timeline.seconds, 1.0),
        loss_percent=lost[0],
        tokens_lost=lost[1],
        confidence=0.99 if len(rows) >= 10 else 0.75,
        evidence=(
            witness.that(
                f"The host took {ratio:.2f} times the GPU time for rounds of {', '.join(graphs)}, one after another: "
                f"the device idled {idle_ns / 1e9:.2f} s before {counted(len(rows), 'round')} that waited for no results.",
                "gpu_idle",
                "host_delays",
                sequences=timeline.sequence[rows].tolist(),
                host_time_ratio=(ratio, "ratio"),
                idle_gap_ns=(idle_ns, "ns"),
                rounds=(len(rows), "rounds"),
            ),
        ),
        rounds=len(rows),
        idle_ns=idle_ns,
        graphs=tuple(graphs),
        host_time_ratio=ratio,
    )


def _late_time(timeline: Timeline, costs: Costs, decisions: Decisions | None) -> tuple[Ints, float, list[str]] | None:
    """Bins in which the host was systematically late with a graph to choose from, their length, and the graphs."""
    known = np.asarray(
        np.isfinite(decisions.estimates).any(axis=0)
        if decisions is not None
        else np.bincount(timeline.graph[timeline.decoding], minlength=len(timeline.names)) > 0
    )
    late: Bools = np.logical_and(costs.late_ratio > 0, known)
    bins = np.flatnonzero(late.any(axis=1))
    if not len(bins):
        return None
    return bins, len(bins) * timeline.bin_ns / 1e9, [timeline.names[g] for g in np.flatnonzero(late.any(axis=0))]


def _lost_to_slow_host(costs: Costs, decisions: Decisions | None) -> tuple[float, float]:
    """Throughput lost against a host that keeps up: per cent of that, and tokens."""
    if decisions is None:
        return 0.0, 0.0
    gpu = np.where(
        np.isnan(decisions.costs), np.nan, decisions.costs - costs.late[decisions.timeline.bins[decisions.row]]
    )
    could = np.nanmax(decisions.tokens / gpu, axis=1)
    slow = np.asarray((costs.late_ratio > 0).any(axis=1))[decisions.timeline.bins[decisions.row]]
    weights = decisions.weights_ns
    lost = float(((could - decisions.of_chosen(decisions.rates)) * weights)[slow].sum())
    return 100 * lost / float(could @ weights), lost


def stumbling_of(
    timeline: Timeline, costs: Costs, stumbles: Stumbles, *, harmless: bool, witness: Witness
) -> list[HostLate]:
    """Contention, bursts, or single stumbles that did no harm: the first of them that fits."""
    if stumbles.is_contended and _contended(timeline, stumbles.held_up):
        says = "The host was held up on {rounds} of {graphs}, irregularly and throughout the cell; the device idled {idle_s:.2f} s."
        return [_finding(Kind.CPU_CONTENTION, timeline, costs, stumbles.held_up, says=says, witness=witness)]
    if stumbles.bursts:
        rows = np.concatenate(stumbles.bursts)
        runs = ", ".join(str(len(burst)) for burst in stumbles.bursts)
        says = f"The host stumbled with several rounds in a row ({runs}): {{rounds}} of {{graphs}}."
        return [_finding(Kind.DELAY_BURSTS, timeline, costs, rows, says=says, witness=witness)]
    if len(stumbles.rows) and harmless:
        says = (
            "The host stumbled with {rounds} of {graphs}, before which the device idled {idle_s:.2f} s; no decision became "
            "worse by it."
        )
        return [_finding(Kind.HARMLESS_DELAY, timeline, costs, stumbles.rows, says=says, witness=witness)]
    return []


def _contended(timeline: Timeline, held_up: Ints) -> bool:
    if len(held_up) < CONTENTION_RATE_HZ * timeline.seconds:
        return False
    edges = np.arange(timeline.since_ns, timeline.until_ns, CONTENTION_STRETCH_NS)
    met = [((timeline.started[held_up] >= a) & (timeline.started[held_up] < b)).any() for a, b in pairwise(edges)]
    return bool(met) and float(np.mean(met)) >= CONTENTION_SPREAD


def _finding(kind: Kind, timeline: Timeline, costs: Costs, rows: Ints, *, says: str, witness: Witness) -> HostLate:
    idle_ns = int(costs.stumble[rows].sum())
    graphs = tuple(timeline.names[graph] for graph in np.unique(timeline.graph[rows]))
    timed = rows[timeline.host[rows] >= 0]
    ratio = float(np.median(timeline.host[timed] / timeline.round_gpu[timed])) if len(timed) else 0.0
    share = idle_ns / 1e9 / timeline.seconds
    emitted = sum(e.batch_tokens_emitted or 0 for e in timeline.executions[int(timeline.in_cell.argmax()) :])
    return HostLate(
        kind=kind,
        since_ns=int(timeline.started[rows].min()),
        until_ns=int(timeline.observed[rows].max()),
        fraction=min(share, 1.0),
        loss_percent=100 * min(share, 1.0),
        tokens_lost=tokens_short(emitted, min(share, 1.0)),
        confidence=_confidence(kind, timeline, costs, rows),
        evidence=(
            witness.that(
                says.format(rounds=counted(len(rows), "round"), graphs=", ".join(graphs), idle_s=idle_ns / 1e9)
                + (NOT_TOLD_FROM_NO_WORK if _had_waited(timeline, rows) else ""),
                "host_delays",
                "slow_executions",
                sequences=timeline.sequence[rows].tolist(),
                rounds=(len(rows), "rounds"),
                idle_gap_ns=(idle_ns, "ns"),
            ),
        ),
        rounds=len(rows),
        idle_ns=idle_ns,
        graphs=graphs,
        host_time_ratio=ratio,
    )


def _confidence(kind: Kind, timeline: Timeline, costs: Costs, rows: Ints) -> float:
    """By what the device shows: what it idled before is certain, what its queue hid is known from the host alone."""
    if _had_waited(timeline, rows):
        return 0.6
    idled = int((costs.stumble[rows] >= STUMBLE_MIN_NS).sum())
    return 0.97 if kind is not Kind.CPU_CONTENTION or idled >= SURE_ROUNDS else 0.75


def _had_waited(timeline: Timeline, rows: Ints) -> bool:
    """Most of these rounds came after the host had seen the one before end: it was free, with nothing in flight."""
    return 2 * int((timeline.feedback[rows - 1] & ~timeline.needed[rows - 1]).sum()) > len(rows)
