"""A cell's own distributions, as a scenario that the simulator can run: what the closed loop is fitted to.

Everything is taken from the record: device time of each graph, its noise and where it changed; the host's
planning, notice and launch; stumbles at their times; how far drafts were accepted, by depth, and where that
changed; prefills by tokens or by time; feedback; idle time. What the record cannot say stands in `notes`.
"""

import itertools
import statistics
from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

from engine_hooks.commands.counting import counted
from engine_hooks.contract.execution import GraphExecution
from engine_hooks.contract.names import DECODING_KINDS, GraphKind, Purpose
from engine_hooks.scheduler.graphs import Graph
from engine_hooks.simulator.delays import Delay
from engine_hooks.simulator.parameters import Conditions, Engine, Pause, Phase, Rounds, Scenario
from queries.errors import CallError, NotSimulatedError
from queries.known_by_then import observed_at
from queries.record import CellExecutions
from queries.replay.acceptance import Acceptance, acceptance_of
from queries.replay.exact import can_be_taken_again
from queries.replay.gpu_times import GpuTimes, gpu_times_of
from queries.replay.graphs import candidate_graphs
from queries.replay.host import launch_ns_of, notify_ns_of
from queries.replay.planning import Planning, planning_of
from queries.replay.prefills import Prefills, prefills_of
from queries.replay.stretches import SHORTEST

PREFILL_NAME: Final = "prefill"
ROUNDS_MIN: Final = SHORTEST
"""Decode rounds of a cell that is simulated, at least: fewer show no level of anything."""
PROBES_APART: Final = 0.2
"""Acceptance probes keep an interval if their gaps differ by no more than this share of it, at the median."""


class Fit(NamedTuple):
    """A cell as the simulator can run it again."""

    scenario: Scenario
    began_at: int
    """Virtual time 0, in Unix nanoseconds: as the first decision is planned."""
    last_submitted_ns: int
    """The cell's last submission, on the virtual clock."""
    stumbles: tuple[Delay, ...]
    """On the virtual clock."""
    believed_acceptance: tuple[float, ...]
    """What the scheduler believed of drafts by depth as the cell began."""
    probe_interval_ns: int
    """Time without a speculative round after which the scheduler probes acceptance; 0: it does not."""
    head: tuple[GraphExecution, ...]
    """Executions of the cell before its first decision: calibrations, and what was already on its way."""
    rounds: tuple[GraphExecution, ...]
    """The cell's executions from its first decision on."""
    notes: tuple[str, ...]


class Parts(NamedTuple):
    """What the fit is put together from."""

    graphs: tuple[Graph, ...]
    lanes: int
    gpu: GpuTimes
    planning: Planning
    acceptance: Acceptance
    prefills: Prefills
    grammar_lanes: int


def fitted(cell: CellExecutions) -> Fit:
    """Fit a cell.

    Raises:
        NotSimulatedError: its record is too short, or lacks GPU times, tokens, drafts or costs.
        CallError: no decision in it says what it was chosen from.
    """
    first = first_decision(cell)
    head, rounds = cell.executions[:first], cell.executions[first:]
    check(cell, rounds)
    parts = parts_of(cell, rounds)
    launch_ns = launch_ns_of(cell.executions)
    # The device may still be at what was submitted before.
    device_free_at = rounds[0].started_at + max((rounds[0].graph_gpu_start_offset_ns or 0) - launch_ns, 0)
    began_at = device_free_at - int(parts.planning.ns_at(rounds[0].graph_name, rounds[0].graph_kind, device_free_at))
    last_ns = rounds[-1].started_at - began_at
    scenario = Scenario(
        f"fitted to cell {cell.cell}",
        engine_of(cell, parts, launch_ns),
        phases_of(parts, began_at),
        pauses=pauses_of(rounds, began_at),
        duration_ns=max(last_ns, 1),
    )
    stumbles = tuple(
        delay._replace(at_ns=delay.at_ns - began_at) for delay in parts.planning.stumbles if delay.at_ns >= began_at
    )
    acceptance = parts.acceptance
    return Fit(
        scenario,
        began_at,
        last_ns,
        stumbles,
        acceptance.believed,
        probe_interval_of(rounds),
        head,
        rounds,
        notes_on(rounds, parts),
    )


def first_decision(cell: CellExecutions) -> int:
    """The number of the first decode round that says what it was chosen from.

    Raises:
        NotSimulatedError: only rounds of other kinds do.
        CallError: none does.
    """
    usable = [n for n, one in enumerate(cell.executions) if can_be_taken_again(one)]
    if not usable:
        raise CallError(f"cell {cell.cell} records of no decision what it was chosen from: there is nothing to replay")
    decoding = (n for n in usable if cell.executions[n].graph_kind in DECODING_KINDS)
    if (first := next(decoding, None)) is None:
        raise NotSimulatedError(f"cell {cell.cell} records no decision about a decode round")
    return first


def check(cell: CellExecutions, rounds: Sequence[GraphExecution]) -> None:
    """Refuse a cell that cannot be simulated.

    Raises:
        NotSimulatedError: its record is too short, or lacks GPU times or tokens.
    """
    for what, known in (
        ("GPU times", any(one.graph_gpu_time_ns for one in rounds)),
        ("tokens", any(one.batch_tokens_emitted for one in rounds)),
    ):
        if not known:
            raise NotSimulatedError(f"cell {cell.cell} records no {what}")
    chosen = sum(one.graph_kind in DECODING_KINDS for one in rounds)
    if chosen < ROUNDS_MIN:
        few = f"{counted(chosen, 'decode round')} of the {ROUNDS_MIN} that a fit needs"
        raise NotSimulatedError(f"the record of cell {cell.cell} is too short, {few}")
    if rounds[-1].started_at <= rounds[0].started_at:
        raise NotSimulatedError(f"the record of cell {cell.cell} is too short, all of it begins at one instant")


def parts_of(cell: CellExecutions, rounds: Sequence[GraphExecution]) -> Parts:
    """Fit each quantity by itself."""
    chosen = [one for one in rounds if one.graph_kind in DECODING_KINDS]
    lanes = int(statistics.median([one.batch_lanes or 1 for one in chosen]))
    known = (*cell.before, *rounds)
    acceptance = acceptance_of([one for one in known if one.batch_tokens_drafted], chosen, lanes)
    return Parts(
        candidate_graphs(cell, lanes, acceptance),
        lanes,
        gpu_times_of(known),
        planning_of(known),
        acceptance,
        prefills_of(rounds),
        1 if feedback_share(chosen) > 0.5 else 0,
    )


def engine_of(cell: CellExecutions, parts: Parts, launch_ns: int) -> Engine:
    """The engine that the record shows."""
    prefills = [one.graph_name for one in cell.executions if one.graph_kind not in DECODING_KINDS]
    prefill = Counter(prefills).most_common(1)[0][0] if prefills else PREFILL_NAME
    planning = parts.planning
    return Engine(
        lanes=parts.lanes,
        graph_gpu_ns={graph: int(device_ns(cell, parts, graph.name)) for graph in parts.graphs},
        gpu_noise=parts.gpu.noise,
        gpu_speed_sd=0.0,
        planning_ns=int(planning.least_ns),
        planning_sigma=planning.sigma,
        slow_planning_sigma=planning.sigma,
        notify_ns=notify_ns_of(cell.executions),
        launch_ns=launch_ns,
        request_tokens=parts.prefills.tokens_between,
        prefill_ns=int(prefill_ns_of(cell, parts)),
        prefill_graph=prefill,
        lane_acceptance_sd=0.0,
        cell_acceptance_sd=0.0,
        acceptance_by_depth=parts.acceptance.factors,
    )


def prefill_ns_of(cell: CellExecutions, parts: Parts) -> float:
    """Mean device time of what no scheduler chooses, at factor 1."""
    names = [one.graph_name for one in cell.executions if one.graph_kind not in DECODING_KINDS]
    return statistics.fmean(parts.gpu.graph_ns.get(name, 0.0) for name in names) if names else 0.0


def device_ns(cell: CellExecutions, parts: Parts, graph: str) -> float:
    """Device time of a graph: as measured, if only at start-up; else the least it was ever charged.

    Raises:
        NotSimulatedError: the record has neither.
    """
    if graph in parts.gpu.graph_ns:
        return parts.gpu.graph_ns[graph]
    calibrated = [one.graph_gpu_time_ns for one in cell.executions if one.graph_name == graph]
    known_ns = statistics.median(calibrated) if calibrated else least_charged_ns(cell.executions, graph)
    if not known_ns:
        raise NotSimulatedError(f"cell {cell.cell} records neither a GPU time of {graph} nor a charge for it")
    return known_ns


def least_charged_ns(executions: Sequence[GraphExecution], graph: str) -> int:
    """The least that a candidate was charged: a charge errs upwards, if it errs. 0 where it was charged nothing."""
    charges = (
        charged_ns
        for one in executions
        if can_be_taken_again(one)
        for name, charged_ns in zip(one.scheduler_candidate_graphs, one.scheduler_candidate_estimates_ns, strict=True)
        if name == graph
    )
    return min(filter(None, charges), default=0)


def phases_of(parts: Parts, began_at: int) -> tuple[Phase, ...]:
    """The cell's conditions, a phase from each instant at which anything changed."""
    steps = [
        parts.gpu.factor,
        *parts.gpu.graph_factor.values(),
        *parts.planning.factor.values(),
        parts.acceptance.rate,
    ]
    changes = {began_at, *(at for one in steps for at in one.from_ns[1:] if at > began_at)}
    return tuple(Phase(at - began_at, conditions_at(parts, at)) for at in sorted(changes))


def conditions_at(parts: Parts, at: int) -> Conditions:
    """What held at an instant."""
    return Conditions(
        acceptance=parts.acceptance.rate.at(at),
        gpu_factor=parts.gpu.factor.at(at),
        graph_gpu_factor={name: steps.at(at) for name, steps in parts.gpu.graph_factor.items()},
        graph_planning_ns={graph.name: int(parts.planning.ns_at(graph.name, graph.kind, at)) for graph in parts.graphs},
        grammar_lanes=parts.grammar_lanes,
        prefill_rate_hz=parts.prefills.rate_hz,
    )


def pauses_of(rounds: Sequence[GraphExecution], began_at: int) -> tuple[Pause, ...]:
    """The stretches in which the engine had no work."""
    pauses = []
    for before, execution in itertools.pairwise(rounds):
        at = observed_at(before)
        if execution.graph_after_idle and execution.started_at > at:
            pauses.append(Pause(max(at - began_at, 0), execution.started_at - at))
    return tuple(pauses)


def probe_interval_of(rounds: Sequence[GraphExecution]) -> int:
    """The usual time from a speculative round to an acceptance probe; 0 where they keep no such interval."""
    speculated_at = 0
    gaps = []
    for one in rounds:
        if one.graph_purpose == Purpose.ACCEPTANCE_PROBE and speculated_at:
            gaps.append(one.started_at - speculated_at)
        if one.graph_kind == GraphKind.SPECULATIVE:
            speculated_at = one.started_at
    if not gaps:
        return 0
    usual_ns = statistics.median(gaps)
    return int(usual_ns) if statistics.median(abs(gap - usual_ns) for gap in gaps) < PROBES_APART * usual_ns else 0


def feedback_share(chosen: Sequence[GraphExecution]) -> float:
    """Share of the decoding rounds whose successor had to wait for their results."""
    return sum(one.graph_completion_feedback for one in chosen) / len(chosen)


def notes_on(rounds: Sequence[GraphExecution], parts: Parts) -> tuple[str, ...]:
    """What of the record the simulation cannot show, a sentence each."""
    chosen = [one for one in rounds if one.graph_kind in DECODING_KINDS]
    notes = []
    if len(lanes := {one.batch_lanes for one in chosen}) > 1:
        notes.append(f"the batch had {len(lanes)} sizes; all rounds are simulated with {parts.lanes} lanes")
    if 0.02 < (share := feedback_share(chosen)) < 0.98:
        how = "all" if parts.grammar_lanes else "none"
        notes.append(f"{share:.0%} of the decoding rounds needed feedback; in the simulation {how} do")
    if any(delay.rounds == Rounds.SPECULATIVE for delay in parts.planning.stumbles):
        notes.append(
            "the host stumbled on speculative rounds only; stumbles that would have come while it decoded plainly"
            " are in no record, and not in the simulation"
        )
    if any(one.graph_purpose == Purpose.ACCEPTANCE_PROBE for one in chosen) and not probe_interval_of(rounds):
        notes.append("the record has acceptance probes at no even interval; the simulated scheduler makes none")
    other = sum(one.batch_tokens_emitted or 0 for one in rounds if one.graph_kind not in DECODING_KINDS)
    if other:
        notes.append(
            f"{counted(other, 'token')} came from rounds that no scheduler chose; in the simulation these emit none"
        )
    if all(one.graph_gpu_start_offset_ns is None for one in rounds):
        notes.append("the record does not say when graphs started on the device; notice and launch count as nothing")
    return tuple(notes)
